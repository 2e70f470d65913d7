/** Makes the proof of a batch from its stored inputs, without the names of its orders and accounts. */
import type { ClearingInputs } from '../../domain/auction/clearing.ts'
import { orderIdOf } from '../../domain/orders/order.ts'
import type { FillStatus } from '../../domain/orders/order-state.ts'
import { stateBatch, statedSequence } from '../../domain/proof/statement.ts'
import { type BatchProof as DomainProof, type PartStatus, statusOf } from '../../domain/proof/verify.ts'
import { digestOf, toWire } from '../../domain/proof/wire.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import { keccak } from '../../service/crypto.ts'
import type { CapturedBatch, FillRow, OrderNames } from './proof-query.ts'
import { commitmentOf, saltedOrders } from './proof-salts.ts'
import type { BatchProof, ProofPart } from './proof-schema.ts'

const STATUS: Readonly<Record<FillStatus, PartStatus>> = {
  MATCHED: 'settling',
  SUBMITTED: 'settling',
  RETRYING: 'settling',
  MINED: 'settled',
  CONFIRMED: 'settled',
  FAILED: 'failed',
}

/** The orders in the inputs, for `namesOf`. */
export function ordersOf(marketId: MarketId, inputs: ClearingInputs): OrderNames {
  const [triggered, others] = [true, false].map((isTriggered) =>
    statedSequence(inputs)
      .filter((order) => order.triggered === isTriggered)
      .map(({ seq }) => seq),
  ) as [Seq[], Seq[]]
  return {
    ids: `{${others.map((seq) => orderIdOf(marketId, seq)).join()}}`,
    triggered: `{${triggered.join()}}`,
  }
}

export interface OrderName {
  readonly order_id: string
  readonly hash: string
}

export interface ProofInput extends Pick<CapturedBatch, 'marketId' | 'batchId' | 'key' | 'oracle'> {
  readonly inputs: ClearingInputs
  /** Names of all orders in the inputs. */
  readonly orders: ReadonlyMap<Seq, OrderName>
  readonly fills: readonly FillRow[]
}

export function proofView(batch: ProofInput): BatchProof {
  const { marketId, batchId, inputs, oracle, orders, key } = batch
  const salted = saltedOrders(key, marketId, batchId)
  const committed = (seq: Seq) => salted((orders.get(seq) as OrderName).hash)
  const statement = toWire(
    stateBatch({ inputs, oracle, batchId, commitmentOf: (seq) => commitmentOf(committed(seq)) }),
  )
  const parts = partsOf(batch, committed)
  const proof: DomainProof = {
    ...{ market_id: marketId, symbol: inputs.spec.symbol, batch_id: batchId, status: statusOf(parts) },
    ...{ digest: digestOf(statement, keccak), statement, parts },
  }
  return proof as BatchProof
}

/** Hash and salt of an order are published with its first mined fill in the batch: the calldata has the order. */
function partsOf(
  { inputs, orders, fills }: ProofInput,
  committed: (seq: Seq) => { readonly orderHash: string; readonly salt: string },
): ProofPart[] {
  const stated = statedSequence(inputs).map((order, index) => {
    return [orders.get(order.seq)?.order_id, { order, place: index + 1 }] as const
  })
  const byId = new Map(stated)
  const parts = Map.groupBy(fills, ({ part }) => part)
  return [...parts]
    .sort(([a], [b]) => a - b)
    .map(([part, rows]) => {
      const { status, tx_hash } = rows[0] as FillRow
      const isSettled = STATUS[status] === 'settled'
      const proofFills = rows.map(({ order_id, steps, taker_steps }) => {
        const { order, place } = byId.get(order_id) as NonNullable<ReturnType<typeof byId.get>>
        const opened = isSettled && !order.forced ? committed(order.seq) : null
        const opening = { order_hash: opened?.orderHash ?? null, salt: opened?.salt ?? null }
        return { order: place, steps, taker_steps, ...opening }
      })
      const fields = { part, status: STATUS[status], transaction_hash: isSettled ? tx_hash : null }
      return { ...fields, fills: proofFills.sort((a, b) => a.order - b.order) }
    })
}
