/** Preloaded into processes of a campaign: their system clock is ahead by the milliseconds in the file of CHAOS_CLOCK. */
import { readFileSync } from 'node:fs'

const file = process.env.CHAOS_CLOCK ?? ''
const POLL_MS = 100
const System = Date
const systemNow = Date.now

let ahead = 0
const read = (): void => {
  try {
    ahead = Number(readFileSync(file, 'utf8'))
  } catch {
    // The file is being written, or its disk is gone: the clock stays as it is.
  }
}
read()
setInterval(read, POLL_MS).unref()

const now = (): number => systemNow() + ahead

globalThis.Date = new Proxy(System, {
  construct: (target, values: unknown[], newTarget) =>
    Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget),
  apply: () => new System(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})
