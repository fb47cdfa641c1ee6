// What recoveryd does inside of OpenCode: it answers the daemon's few questions, and adds the command /recoveryd.
//
// The two talk by files in the daemon's own state folder, which only this user may read. Nothing listens, no part of a
// conversation is written, and every call of the client is guarded: where it changed, nothing of this happens any more.
// What is done and why: docs/plugin.md and SECURITY.md of recoveryd.
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"

const INSTALLED = {}
const FORMAT = 1 // of the files
const FOLDER = path.join(INSTALLED.state ?? "/nowhere", "plugin")
const LOOK_MS = 2_000
const UNWATCHED_MS = 200 // where the system tells of no change
const LONGEST = 65_536 // bytes of a question
const TOAST_MS = 10_000
const COMMAND = "recoveryd"
const SAYS = "What recoveryd did to this session; undo: takes it back; continue: goes on"
const TEMPLATE = "Say this in one line: the plugin of recoveryd did not answer, `recoveryd history` does."
const MOST = 1_000 // sessions that are remembered to have run here
const ID = "([A-Za-z0-9_-]{1,200})"

// All that the daemon may ask for, and what it is told: never a word of a conversation.
const CALLS = [
  ["GET", "/global/health", (c) => c._client.get({ url: "/global/health" }), (d) => ({ version: d.version })],
  ["GET", "/session/status", (c, ask) => c.session.status({ query: ask.query }), status],
  ["GET", `/session/${ID}`, (c, ask, id) => c.session.get({ path: { id }, query: ask.query }), place],
  ["GET", `/session/${ID}/message/${ID}`, message, (d) => ({ info: { time: { created: d.info.time.created } } })],
  ["POST", `/session/${ID}/abort`, (c, ask, id) => c.session.abort({ path: { id }, query: ask.query }), nothing],
  ["POST", `/session/${ID}/prompt_async`, prompt, nothing],
  ["POST", "/tui/show-toast", (c, ask) => c.tui.showToast({ query: ask.query, body: ask.body }), nothing],
]
const NEEDED = ["session.status", "session.get", "session.message", "session.abort", "session.promptAsync", "tui.showToast"]

function status(data) {
  return Object.fromEntries(Object.entries(data).map(([id, one]) => [id, { type: one.type }]))
}

function place(data, ran) {
  return { id: data.id, directory: data.directory, ran: ran.has(data.id) }
}

function message(client, ask, id, messageID) {
  return client.session.message({ path: { id, messageID }, query: ask.query })
}

function prompt(client, ask, id) {
  return client.session.promptAsync({ path: { id }, query: ask.query, body: ask.body })
}

function nothing() {
  return null
}

function guarded(work, otherwise) {
  try {
    return work()
  } catch {
    return otherwise
  }
}

// Whether something is this user's own, and nobody else may read or write it.
function ours(stat) {
  return stat.uid === process.getuid() && (stat.mode & 0o077) === 0
}

function open() {
  return guarded(() => {
    const stat = fs.lstatSync(FOLDER)
    return stat.isDirectory() && ours(stat)
  }, false)
}

function write(file, data) {
  const aside = path.join(FOLDER, `.${randomBytes(6).toString("hex")}`)
  fs.writeFileSync(aside, JSON.stringify(data), { mode: 0o600, flag: "wx" })
  fs.renameSync(aside, path.join(FOLDER, file))
}

// The question in a file, which is gone then: whoever takes it away answers it, once. null: none, or it is too late.
function taken(file) {
  const stat = fs.lstatSync(file)
  const ask = stat.isFile() && ours(stat) && stat.size <= LONGEST ? JSON.parse(fs.readFileSync(file, "utf8")) : null
  fs.unlinkSync(file)
  return ask && ask.version === FORMAT && Date.now() <= ask.until ? ask : null
}

async function answer(client, name, ran) {
  const ask = taken(path.join(FOLDER, name))
  if (!ask) return
  const said = await called(client, ask, ran).catch(() => ask.method === "GET" && { status: 500, data: null })
  // Of what failed on its way nobody knows whether it was done: no answer says so.
  if (said) write(name.replace(/\.ask$/, ".answer"), { version: FORMAT, ...said })
}

async function called(client, ask, ran) {
  for (const [method, pattern, call, told] of CALLS) {
    const found = ask.method === method && new RegExp(`^${pattern}$`).exec(ask.path)
    if (!found) continue
    const { data, response } = await call(client, ask, ...found.slice(1))
    return { status: response.status, data: response.status === 200 ? told(data, ran) : null }
  }
  return { status: 501, data: null }
}

// Takes the daemon's questions of one folder's client, until it is stopped.
function listen(client, directory, ran) {
  const key = `${process.pid}-${randomBytes(6).toString("hex")}`
  const missing = NEEDED.filter((name) => typeof name.split(".").reduce((at, part) => at?.[part], client) !== "function")
  const life = { version: FORMAT, plugin: INSTALLED.plugin, client: INSTALLED.client, pid: process.pid, directory }
  const alive = `${key}.json`
  let watcher = null
  const watched = () =>
    guarded(() => {
      const made = fs.watch(FOLDER, { persistent: false }, look)
      made.on("error", () => (watcher = null))
      return made
    }, null)
  const look = () =>
    guarded(() => {
      if (!open()) return
      if (!fs.existsSync(path.join(FOLDER, alive))) write(alive, { ...life, started: Date.now(), missing })
      watcher ??= watched()
      for (const name of fs.readdirSync(FOLDER))
        if (name.startsWith(`${key}.`) && name.endsWith(".ask")) answer(client, name, ran).catch(() => {})
    })
  let timer = null
  const turn = () => {
    look()
    timer = setTimeout(turn, open() && !watcher ? UNWATCHED_MS : LOOK_MS)
    timer.unref?.()
  }
  turn()
  return () => {
    clearTimeout(timer)
    guarded(() => watcher?.close())
    guarded(() => fs.unlinkSync(path.join(FOLDER, alive)))
  }
}

// What listens in this process, by the folder. A client loads a plugin anew without taking away what it loaded before.
function listening() {
  const name = Symbol.for("recoveryd")
  if (!globalThis[name]) {
    globalThis[name] = new Map()
    process.once("exit", () => globalThis[name].forEach((stop) => stop()))
  }
  return globalThis[name]
}

// `recoveryd` with these words; no shell. What it printed, and "" or what it complained of.
function run(...words) {
  const env = { ...process.env }
  for (const name of ["XDG_CONFIG_HOME", "XDG_STATE_HOME"]) delete env[name]
  const [program, ...first] = INSTALLED.command
  const options = { env: { ...env, ...INSTALLED.env }, timeout: 60_000, maxBuffer: 1 << 22 }
  return new Promise((resolve) => {
    execFile(program, [...first, ...words], options, (error, out, complaint) =>
      resolve({ out, problem: error ? String(complaint || error.message).trim() : "" }),
    )
  })
}

function line(entry) {
  const kept = entry.overwritten && entry.outcome === "undone" // what a forced undo wrote over: it was not undone itself
  const outcome = kept ? "kept" : entry.outcome.replace("_", " ")
  return `${new Date(entry.time * 1000).toLocaleString()}, ${outcome}: ${entry.detail} (${entry.id})`
}

// What /recoveryd with these words has to say about a session, and how.
async function told(session, words) {
  const listed = await run("history", "--json", "--limit", "20", "--session", session)
  if (listed.problem) return [listed.problem, "warning"]
  const entries = JSON.parse(listed.out)
  if (!entries.length) return ["recoveryd has done nothing to this session.", "info"]
  if (words !== "undo") {
    const undo = entries.some((entry) => entry.outcome === "healed") ? "\n\nTo take the newest back: /recoveryd undo" : ""
    return [entries.slice(0, 4).map(line).join("\n\n") + undo, "info"]
  }
  const newest = entries.find((entry) => entry.outcome === "healed")
  if (!newest) return ["There is no repair of this session to take back.", "info"]
  const undone = await run("--quiet", "undo", "--json", newest.id)
  if (undone.problem) return [undone.problem, "warning"]
  if (!JSON.parse(undone.out).undone) return ["Nothing was undone: `dry_run` is set in the configuration.", "warning"]
  const then = "is not repaired again by itself before a prompt was answered"
  return [`Undone (${newest.id}): the session is as it was before, and ${then}.`, "success"]
}

function show(client, directory, text, variant) {
  return client.tui.showToast({ query: { directory }, body: { title: "", message: text, variant, duration: TOAST_MS } })
}

export const Recoveryd = async ({ client, directory }) => {
  let mine = false
  const ran = new Set() // sessions with a turn in this process, the oldest first
  guarded(() => {
    listening().get(directory)?.()
    listening().set(directory, listen(client, directory, ran))
  })
  return {
    event: async (about) => {
      guarded(() => {
        if (about.event.type !== "session.status") return
        const session = about.event.properties.sessionID
        ran.delete(session)
        ran.add(session)
        if (ran.size > MOST) ran.delete(ran.values().next().value)
      })
    },
    config: async (config) => {
      guarded(() => {
        config.command ??= {}
        config.command[COMMAND] ??= { template: TEMPLATE, description: SAYS }
        mine = config.command[COMMAND].template === TEMPLATE // and not one of the user's own
      })
    },
    "command.execute.before": async (input, output) => {
      if (!mine || input?.command !== COMMAND) return
      const words = String(input.arguments ?? "").trim()
      if (words === "continue") {
        output.parts.splice(0, output.parts.length, { type: "text", text: "continue" })
        return
      }
      try {
        await show(client, directory, ...(await told(input.sessionID, words)))
      } catch {}
      throw new Error("/recoveryd was answered; there is nothing to ask the model.") // else it is sent as a prompt
    },
  }
}
