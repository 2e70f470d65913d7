/**
 * Recovers signers: few orders on the calling thread, many on worker threads. Passing one order costs a tenth of a
 * recovery and delays the result by two event loop turns.
 */
import { Worker } from 'node:worker_threads'
import type { Order } from '../../domain/orders/order.ts'
import type { SigningTerms } from '../../domain/orders/order-hash.ts'
import type { Recovered, RecoverSigners, Signed } from '../ports.ts'
import { recoverSigner } from './recovery.ts'

export interface Task {
  readonly id: number
  readonly markets: readonly SigningTerms[]
  /** `market` is an index into `markets`. */
  readonly signed: readonly { readonly market: number; readonly order: Order; readonly signature: string }[]
}

export interface TaskAnswer {
  readonly id: number
  readonly recovered: readonly Recovered[]
}

export interface SignaturePool {
  readonly recoverSigners: RecoverSigners
  stop(): Promise<void>
}

/** Minimum orders for a worker thread, measured by `npm run bench:batch`. */
const FEWEST = 4

const recoverHere = ({ spec, order, signature }: Signed): Recovered => recoverSigner(spec, order, signature)

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, PromiseWithResolvers<readonly Recovered[]>>
}

function taskOf(id: number, signed: readonly Signed[]): Task {
  const specs = [...new Set(signed.map(({ spec }) => spec))]
  return {
    id,
    markets: specs.map(({ chainId, trader, tick, step }) => ({ chainId, trader, tick, step })),
    signed: signed.map(({ spec, order, signature }) => ({ market: specs.indexOf(spec), order, signature })),
  }
}

export interface PoolOptions {
  /** Fewer orders than this are recovered on the calling thread. */
  readonly fewest?: number
  /** The program of the worker threads. */
  readonly program?: URL
}

/** Threads start with the first task. If one dies, its pending tasks run on the calling thread and a later task starts a new thread. */
export function createSignaturePool(
  size: number,
  { fewest = FEWEST, program = new URL('./worker.ts', import.meta.url) }: PoolOptions = {},
): SignaturePool {
  const threads: Thread[] = []
  let isStopped = false
  let ids = 0

  const start = (): Thread => {
    const worker = new Worker(program)
    const thread: Thread = { worker, waiting: new Map() }
    worker.unref()
    worker.on('message', ({ id, recovered }: TaskAnswer) => {
      thread.waiting.get(id)?.resolve(recovered)
      thread.waiting.delete(id)
    })
    const discard = (error: Error): void => {
      const at = threads.indexOf(thread)
      if (at >= 0) threads.splice(at, 1)
      for (const task of thread.waiting.values()) task.reject(error)
      thread.waiting.clear()
    }
    worker.on('error', discard)
    worker.on('exit', () => discard(new Error('the worker thread exited')))
    threads.push(thread)
    return thread
  }

  /** An idle thread, a new thread below `size`, or otherwise the least busy thread. */
  const choose = (): Thread => {
    const [idlest] = [...threads].sort((a, b) => a.waiting.size - b.waiting.size)
    if (idlest !== undefined && (idlest.waiting.size === 0 || threads.length >= size)) return idlest
    return start()
  }

  return {
    async recoverSigners(signed) {
      if (size === 0 || isStopped || signed.length < fewest) return signed.map(recoverHere)
      const { worker, waiting } = choose()
      const task = taskOf(ids++, signed)
      const answer = Promise.withResolvers<readonly Recovered[]>()
      waiting.set(task.id, answer)
      worker.postMessage(task)
      return answer.promise.catch(() => signed.map(recoverHere))
    },
    async stop() {
      isStopped = true
      await Promise.all(threads.map(({ worker }) => worker.terminate()))
    },
  }
}
