-- Asks for a random target as a random client each time. Arguments: a file of targets with their
-- methods, one of the clients' header lines, the share of the requests that close their connection,
-- the seed, and the pause between an answer and a request in milliseconds.

local targets, kept, last = {}, {}, {}
local closing

init = function(args)
    for line in io.lines(args[1]) do targets[#targets + 1] = line end
    local text = io.open(args[2], "rb"):read("*a")
    for lines in text:gmatch("(.-\r\n)\r\n") do
        kept[#kept + 1] = " HTTP/1.1\r\n" .. lines .. "\r\n"
        last[#last + 1] = " HTTP/1.1\r\nConnection: close\r\n" .. lines .. "\r\n"
    end
    closing = tonumber(args[3])
    math.randomseed(args[4])
    local pause = tonumber(args[5])
    if pause > 0 then delay = function() return pause end end
end

-- A target and a client's lines are put together for each request: all pairs would take hundreds of MB.
request = function()
    local heads = math.random() < closing and last or kept
    return targets[math.random(#targets)] .. heads[math.random(#heads)]
end

done = function(summary, latency)
    local errors = summary.errors
    local line = '\n{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "longest_ms": %f, ' ..
        '"not_2xx": %d, "socket_errors": %d}\n'
    io.write(string.format(line, summary.requests, summary.duration / 1e6,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
        errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
