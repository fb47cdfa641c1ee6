// Loads the plugin as a client would, with a client of its own making, and does what stdin says: a JSON object a line.
import * as readline from "node:readline"

const [, , plugin, directory, how] = process.argv
const calls = []
const fine = (data) => ({ data, response: { status: 200 } })
const call = (name, data) => async (options) => (calls.push([name, options]), fine(data))
const client = {
  _client: { get: call("get", { version: "1.18.33", secret: "a word" }) },
  session: {
    status: call("status", { ses_1: { type: "busy", message: "a word" } }),
    get: call("session", { id: "ses_1", directory, title: "a word" }),
    message: call("message", { info: { time: { created: 7 }, text: "a word" }, parts: ["a word"] }),
    abort: call("abort", true),
    promptAsync: async (options) => (calls.push(["prompt", options]), { response: { status: 204 } }),
  },
  tui: { showToast: call("toast", true) },
}
if (how === "idle") client.session.status = call("status", {})
if (how === "changed") delete client.session
if (how === "throws") client.session.get = client.session.abort = () => { throw new Error("it is another API") }
const { Recoveryd } = await import(plugin)
let hooks = await Recoveryd({ client, directory })
if (how === "twice") hooks = await Recoveryd({ client, directory })
if (how === "many folders") for (let n = 0; n < 15; n++) await Recoveryd({ client, directory: `${directory}/${n}` })
const say = (data) => console.log(JSON.stringify(data ?? null))
say("loaded")
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { does, command, words, config, session } = JSON.parse(line)
  if (does === "calls") say(calls)
  if (does === "event") {
    await hooks.event({ event: { type: "session.status", properties: { sessionID: session } } })
    await hooks.event({})
    say("heard")
  }
  if (does === "config") {
    await hooks.config(config)
    say(config)
  }
  if (does === "command") {
    const output = { parts: [{ type: "text", text: "the template" }] }
    try {
      await hooks["command.execute.before"]({ command, arguments: words, sessionID: session ?? "ses_1" }, output)
      say(output.parts)
    } catch {
      say("stopped")
    }
  }
}
process.exit(0)
