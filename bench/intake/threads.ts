/** Measures the signature checks of a batch on the main thread and on a worker thread. */
import { createSignaturePool } from '../../api/signatures/pool.ts'
import { recoverSigner } from '../../api/signatures/recovery.ts'
import { ISOLATED_MARKETS } from './isolated-target.ts'
import { accountOf, type BenchMarket, signerOf } from './orders.ts'

const ROUNDS = 200

export interface ThreadTimes {
  readonly orders: number
  readonly main_thread_us: number
  /** Main-thread time while a worker checks. */
  readonly with_worker_us: number
  readonly until_result_us: number
}

const micros = (ms: number): number => Math.round((ms / ROUNDS) * 1000)

/** Returns one line per batch size. */
export async function measureThreads(sizes: readonly number[]): Promise<ThreadTimes[]> {
  const market = ISOLATED_MARKETS[0] as BenchMarket
  const { spec } = market
  const sign = signerOf(market)
  const account = accountOf(0)
  const pool = createSignaturePool(1, { fewest: 1 })
  const lines: ThreadTimes[] = []
  for (const orders of sizes) {
    const signed = Array.from({ length: orders }, (_, salt) => ({ spec, ...sign(account, salt) }))
    await pool.recoverSigners(signed)
    const start = performance.now()
    for (let round = 0; round < ROUNDS; round++) {
      for (const { order, signature } of signed) recoverSigner(spec, order, signature)
    }
    const here = performance.now() - start
    let handing = 0
    const sent = performance.now()
    for (let round = 0; round < ROUNDS; round++) {
      const before = performance.now()
      const answer = pool.recoverSigners(signed)
      handing += performance.now() - before
      await answer
    }
    const until = performance.now() - sent
    const [main_thread_us, with_worker_us, until_result_us] = [here, handing, until].map(micros)
    lines.push({ orders, main_thread_us, with_worker_us, until_result_us } as ThreadTimes)
  }
  await pool.stop()
  return lines
}
