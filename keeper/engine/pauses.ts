/** Samples how late the event loop runs a timer: the pauses of the engine's thread. */
import type { EngineClock } from './ports.ts'

const SAMPLE_MS = 10

/** A pause counts once per 10 ms, because commands arrive throughout it: a pause of 35 ms counts as 35, 25, 15 and 5 ms. Returns a function that stops sampling. */
export function samplePauses(clock: EngineClock, paused: (lateMs: number) => void): () => void {
  let dueAt = clock.monotonic() + SAMPLE_MS
  let timer = setTimeout(sample, SAMPLE_MS)
  timer.unref()

  function sample(): void {
    const now = clock.monotonic()
    for (; dueAt <= now; dueAt += SAMPLE_MS) paused(now - dueAt)
    timer = setTimeout(sample, dueAt - now)
    timer.unref()
  }

  return () => clearTimeout(timer)
}
