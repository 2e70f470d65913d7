/** Waits for the state from which the next fault, or the audit, may begin. */
import { setTimeout as sleep } from 'node:timers/promises'

const MOST_MS = 120_000
const PACE_MS = 200
/** A member of the engine that is further behind, in seconds, cannot take over at once. */
const MOST_LAG_S = 0.5

/** A rejection counts as false. Throws after two minutes. */
export async function until(what: string, isReached: () => Promise<boolean>): Promise<void> {
  let last = ''
  for (const end = performance.now() + MOST_MS; ; await sleep(PACE_MS)) {
    try {
      if (await isReached()) return
    } catch (error) {
      last = `: ${(error as Error).message}`
    }
    if (performance.now() > end) throw new Error(`waited ${MOST_MS / 1000} s in vain until ${what}${last}`)
  }
}

/** `urls`: of the internal listeners of both engines. One may fail: the other has everything. */
export async function engineCanFail(urls: readonly (string | null)[]): Promise<boolean> {
  const lags = await Promise.all(urls.map(lagOf))
  return lags.every((lag) => lag < MOST_LAG_S)
}

/** Seconds behind the journal. */
async function lagOf(url: string | null): Promise<number> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) })
  const lag = /^engine_follower_lag_seconds (\S+)$/m.exec(await response.text())?.[1]
  return Number(lag ?? 'NaN')
}
