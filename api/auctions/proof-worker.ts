/** Worker thread that makes proofs: it runs the auction of a batch again. */
import { createHash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { unpackInputs } from '../../db/batch-inputs.ts'
import { type ClearingInputs, RULE_VERSION } from '../../domain/auction/clearing.ts'
import type { FillStatus } from '../../domain/orders/order-state.ts'
import type { FillRow, NameRow, OrderNames } from './proof-query.ts'
import { ordersOf, proofView } from './proof-view.ts'
import type { Answer, MadeProof, Task } from './proofs.ts'

/** Inputs of the batch whose proof is being made. */
let inputs: ClearingInputs | null = null

/** Statuses that a fill keeps. */
const isFinal = (status: FillStatus): boolean => status === 'CONFIRMED' || status === 'FAILED'

parentPort?.on('message', (task: Task) => {
  parentPort?.postMessage(task.kind === 'open' ? open(task) : make(task))
})

/** Null if earlier rules cleared the batch. */
function open({ batch }: Task & { kind: 'open' }): Answer<OrderNames | null> {
  inputs = unpackInputs(batch.inputs)
  if (inputs.ruleVersion !== RULE_VERSION) return { value: null }
  return { value: ordersOf(batch.marketId, inputs) }
}

function make({ batch, names }: Task & { kind: 'make' }): Answer<MadeProof> {
  const rows = JSON.parse(names) as readonly NameRow[]
  const fills = JSON.parse(batch.fills) as readonly FillRow[]
  const orders = new Map(rows.map(([seq, order_id, hash]) => [seq, { order_id, hash }]))
  const proof = proofView({ ...batch, inputs: inputs as ClearingInputs, orders, fills })
  const text = JSON.stringify(proof)
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 27)
  return { value: { gzip: gzipSync(text), digest, isFinal: fills.every(({ status }) => isFinal(status)) } }
}
