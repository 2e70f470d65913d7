/** Has the worker verify a batch, and sends its requests to the node that the visitor has chosen. */
import type { BatchProof } from '../../client/responses.ts'
import { wallet } from '../account/wallet.ts'
import type { RpcCall } from '../base/json-rpc.ts'
import { settings } from '../base/settings.ts'
import { reloadOnce } from '../ui/error-boundary.tsx'
import type { FromWorker, OwnCommitment, ToWorker, Verification } from './verdict.ts'

const TIMEOUT_MS = 10_000

const nodeAt =
  (url: string): RpcCall =>
  async (method, params) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } }
    if (error !== undefined) throw new Error(error.message)
    return result
  }

/** Null until the visitor has chosen a node. The operator's own is never used silently. */
function chosenNode(): RpcCall | null {
  const { rpc } = settings.value
  if (rpc === null) return null
  if (rpc !== 'wallet') return nodeAt(rpc)
  const provider = wallet.value?.provider
  return provider === undefined ? null : (method, params) => provider.request({ method, params })
}

interface Job {
  readonly node: RpcCall | null
  readonly resolve: (verification: Verification) => void
}

let worker: Worker | null = null
const jobs = new Map<number, Job>()
let ids = 0

const send = (message: ToWorker): void => worker?.postMessage(message)

async function answer(
  node: RpcCall | null,
  call: number,
  method: string,
  params: readonly unknown[],
): Promise<void> {
  try {
    if (node === null) throw new Error('no node is chosen')
    send({ kind: 'answer', call, result: await node(method, params) })
  } catch (error) {
    send({ kind: 'answer', call, error: (error as Error).message || 'the request failed' })
  }
}

function receive({ data }: MessageEvent<FromWorker>): void {
  const job = jobs.get(data.id)
  if (job === undefined) return
  if (data.kind === 'call') {
    void answer(job.node, data.call, data.method, data.params)
    return
  }
  jobs.delete(data.id)
  job.resolve(data.verification)
}

function start(): Worker {
  const started = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  started.onmessage = receive
  started.onerror = (event) => {
    event.preventDefault()
    // Without a message the file did not load: after a release it has another name.
    if (!event.message && reloadOnce()) return
    const reason = `the verifier failed: ${event.message || 'its file could not be loaded'}`
    for (const { resolve } of jobs.values())
      resolve({ verdict: { state: 'different', differences: [reason] }, own: [], tookMs: 0 })
    jobs.clear()
    started.terminate()
    worker = null
  }
  return started
}

export function verifyBatch(
  proof: BatchProof,
  readAt: number,
  own: readonly OwnCommitment[] = [],
): Promise<Verification> {
  worker ??= start()
  const id = ++ids
  const node = chosenNode()
  return new Promise((resolve) => {
    jobs.set(id, { node, resolve })
    send({ kind: 'verify', id, proof, readAt, hasNode: node !== null, own })
  })
}
