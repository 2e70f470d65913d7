/** Worker thread that recovers signers. */
import { parentPort } from 'node:worker_threads'
import type { Task, TaskAnswer } from './pool.ts'
import { recoverSigner } from './recovery.ts'

parentPort?.on('message', ({ id, markets, signed }: Task) => {
  const recovered = signed.map(({ market, order, signature }) => {
    const terms = markets[market]
    if (terms === undefined)
      throw new Error(`task refers to market ${market}; it has ${markets.length} markets`)
    return recoverSigner(terms, order, signature)
  })
  parentPort?.postMessage({ id, recovered } satisfies TaskAnswer)
})
