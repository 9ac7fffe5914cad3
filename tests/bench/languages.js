// Puts a text into both boxes, and returns the lines of the narrow one.
text => {
  document.querySelector('#line').textContent = document.querySelector('#pieces').textContent = text
  const node = document.querySelector('#pieces').firstChild, pieces = [], range = document.createRange()
  const top = document.querySelector('#pieces').getBoundingClientRect().top
  let at = 0
  for (const character of text) {
    range.setStart(node, at)
    range.setEnd(node, at += character.length)
    const boxes = range.getClientRects()
    const box = boxes[boxes.length - 1]
    const line = box ? Math.floor(((box.top + box.bottom) / 2 - top) / 160) : pieces.length - 1
    while (pieces.length <= line) pieces.push('')
    pieces[Math.max(line, pieces.length - 1)] += character
  }
  return pieces
}
