/**
 * Makes proofs on a thread of its own, one at a time, and keeps those of final batches: running an auction again takes as long as the auction
 * did, and orders wait for this process meanwhile.
 */
import { Worker } from 'node:worker_threads'
import { ApiError } from '../errors.ts'
import type { BatchKey, BatchState, CapturedBatch, OrderNames } from './proof-query.ts'
import { notAvailable } from './proof-query.ts'

/** The JSON of a proof. */
export interface Proof {
  readonly gzip: Uint8Array
  /** Digest of the JSON. */
  readonly digest: string
}

export interface MadeProof extends Proof {
  /** No fill of the batch changes any more. */
  readonly isFinal: boolean
}

export type Task =
  | { readonly kind: 'open'; readonly batch: CapturedBatch }
  | { readonly kind: 'make'; readonly batch: CapturedBatch; readonly names: string }

export interface Answer<Value> {
  readonly value: Value
}

export interface ProofLimits {
  /** Bytes of the proofs that are kept. */
  readonly bytes: number
  /** Proofs that wait while another is made. */
  readonly waiting: number
}

export interface Proofs {
  /** The proof of a final batch if it is kept. */
  kept(batch: BatchKey, state: BatchState): Proof | null
  /** Throws PROOF_CAPACITY or PROOF_NOT_AVAILABLE. */
  make(
    batch: CapturedBatch,
    state: BatchState,
    namesOf: (orders: OrderNames) => Promise<string>,
  ): Promise<Proof>
  stop(): Promise<void>
}

const DEFAULTS: ProofLimits = { bytes: 64 * 1024 * 1024, waiting: 8 }
/** A thread that exceeds it ends, and the request with it. */
const MEMORY_MB = 512

interface KeptProof extends Proof {
  readonly parts: string
}

const keyOf = ({ marketId, batchId }: BatchKey): string => `${marketId} ${batchId}`

/** The proofs that were requested last. */
function createKept(most: number) {
  const kept = new Map<string, KeptProof>()
  let bytes = 0
  const drop = (key: string): void => {
    bytes -= kept.get(key)?.gzip.length ?? 0
    kept.delete(key)
  }
  return {
    get(batch: BatchKey, { isFinal, parts }: BatchState): Proof | null {
      const key = keyOf(batch)
      const found = kept.get(key)
      if (found === undefined) return null
      kept.delete(key)
      if (isFinal && found.parts === parts) {
        kept.set(key, found)
        return found
      }
      bytes -= found.gzip.length
      return null
    },
    add(batch: BatchKey, proof: KeptProof): void {
      const key = keyOf(batch)
      drop(key)
      kept.set(key, proof)
      bytes += proof.gzip.length
      for (const oldest of kept.keys()) {
        if (bytes <= most) break
        drop(oldest)
      }
    },
  }
}

/** One thread; it starts with the first task, and again after it died. */
function createThread() {
  let worker: Worker | null = null
  let pending: PromiseWithResolvers<unknown> | null = null
  const start = (): Worker => {
    const started = new Worker(new URL('./proof-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    })
    started.unref()
    const fail = (error: Error): void => {
      if (worker !== started) return
      worker = null
      pending?.reject(error)
    }
    started.on('message', ({ value }: Answer<unknown>) => pending?.resolve(value))
    started.on('error', fail)
    started.on('exit', () => fail(new Error('the thread that makes proofs exited')))
    return started
  }
  return {
    /** One task at a time. */
    run(task: Task): Promise<unknown> {
      worker ??= start()
      pending = Promise.withResolvers()
      worker.postMessage(task)
      return pending.promise
    },
    stop: async () => void (await worker?.terminate()),
  }
}

export function createProofs({ bytes, waiting }: ProofLimits = DEFAULTS): Proofs {
  const kept = createKept(bytes)
  const thread = createThread()
  let last: Promise<unknown> = Promise.resolve()
  let places = 0
  let isStopped = false

  /** Runs `work` after all earlier work. */
  async function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    if (places > waiting) throw new ApiError('PROOF_CAPACITY', {}, '1')
    places++
    const turn = last.then(work)
    last = turn.catch(() => {}).finally(() => places--)
    return turn
  }

  return {
    kept: (batch, state) => kept.get(batch, state),
    make: (batch, state, namesOf) =>
      inTurn(async () => {
        if (isStopped) throw new ApiError('SHUTTING_DOWN', {}, '1')
        const orders = (await thread.run({ kind: 'open', batch })) as OrderNames | null
        if (orders === null) throw notAvailable(batch)
        const names = await namesOf(orders)
        const { isFinal, ...proof } = (await thread.run({ kind: 'make', batch, names })) as MadeProof
        if (isFinal && state.isFinal) kept.add(batch, { ...proof, parts: state.parts })
        return proof
      }),
    async stop() {
      isStopped = true
      await thread.stop()
    },
  }
}
