// Draws the benchmark's card with each peer found in ./node_modules and prints one JSON line for each:
// {"name", "median_ms", "cpu_ms", "kilobytes"}. Run by cards.py; see there for what to install. With "many" and a number in place of
// the rounds, Takumi alone draws the cards of stdin, so many at once, as site_cards.py asks for.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [folder, rounds] = [process.argv[2], Number(process.argv[3])];
const cards = process.argv[3] === "many" ? JSON.parse(readFileSync(0, "utf8")) : [JSON.parse(process.argv[4])];
const require = createRequire(join(folder, "x.js"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const font = (weight) => readFile(join(folder, `node_modules/@fontsource/inter/files/inter-latin-${weight}-normal.woff`));
const weights = [400, 600, 700];
const fonts = await Promise.all(weights.map(async (weight) => ({ name: "Inter", data: await font(weight), weight, style: "normal" })));

const box = (style, ...children) => ({ type: "div", props: { style: { display: "flex", ...style }, children } });
const text = (style, value) => ({ type: "div", props: { style: { display: "flex", ...style }, children: value } });
const treeOf = (card) => box(
  {
    width: 1200, height: 630, padding: 72, flexDirection: "column", justifyContent: "space-between", fontFamily: "Inter",
    backgroundColor: "#171016", backgroundImage: "radial-gradient(circle at 1120px 640px, #6b2c33 0%, #171016 62%)",
  },
  box(
    { alignItems: "center" },
    text({ width: 96, height: 96, borderRadius: 48, backgroundColor: "#ff9d7a", color: "#2a0f0c", fontSize: 44, fontWeight: 700,
      alignItems: "center", justifyContent: "center", marginRight: 24 }, card.author[0]),
    box({ flexDirection: "column", flexGrow: 1 },
      text({ color: "#fff6f0", fontSize: 36, fontWeight: 700 }, card.author),
      text({ color: "#d3b9b1", fontSize: 28 }, card.domain)),
    text({ backgroundColor: "#ff9d7a", color: "#2a0f0c", fontSize: 26, fontWeight: 600, padding: "8px 28px", borderRadius: 24 }, card.tag)),
  box(
    { flexDirection: "column" },
    text({ color: "#fff6f0", fontSize: 76, fontWeight: 700, lineHeight: 1.15 }, card.title),
    text({ color: "#d3b9b1", fontSize: 32, lineHeight: 1.4, marginTop: 24 }, card.description)));

const node = (element) => {
  const { style, children } = element.props;
  if (typeof children === "string") {
    return { type: "container", style, children: [{ type: "text", text: children }] };
  }
  return { type: "container", style, children: children.map(node) };
};

async function measure(name, draw) {
  let png;
  for (let n = 0; n < 5; n++) png = await draw();
  const times = [];
  const begin = process.cpuUsage();
  for (let n = 0; n < rounds; n++) {
    const start = performance.now();
    png = await draw();
    times.push(performance.now() - start);
  }
  const { user, system } = process.cpuUsage(begin);
  times.sort((a, b) => a - b);
  const figures = { median_ms: times[Math.floor(rounds / 2)], cpu_ms: (user + system) / 1000 / rounds, kilobytes: png.length / 1000 };
  console.log(JSON.stringify({ name, ...figures }));
  if (process.argv[5]) await (await import("node:fs/promises")).writeFile(join(process.argv[5], `${name.replaceAll(/\W+/g, "-")}.png`), png);
}

const takumi = await load("@takumi-rs/core");
const renderer = new takumi.Renderer();
for (const { data, weight } of fonts) await renderer.registerFont({ name: "Inter", data, weight });
if (process.argv[3] === "many") {
  let next = 0;
  const draw = async () => {
    while (next < cards.length) {
      await renderer.render(node(treeOf(cards[next++])), { width: 1200, height: 630, format: "png" });
    }
  };
  await Promise.all(Array.from({ length: Number(process.argv[4]) }, draw));
  process.exit(0);
}
const tree = treeOf(cards[0]);
const takumiTree = node(tree);
await measure("takumi", () => renderer.render(takumiTree, { width: 1200, height: 630, format: "png" }));

const satori = (await load("satori")).default;
const { Resvg } = await load("@resvg/resvg-js");
const render = satori.default ?? satori;
await measure("satori + resvg-js", async () => new Resvg(await render(tree, { width: 1200, height: 630, fonts })).render().asPng());

const { ImageResponse } = await load("@vercel/og");
await measure("vercel og", async () => Buffer.from(await new ImageResponse(tree, { width: 1200, height: 630, fonts }).arrayBuffer()));
