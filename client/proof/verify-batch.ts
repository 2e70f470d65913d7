/**
 * Verifies a batch proof: recomputes it, compares it with the chain, and finds a trader's own order in it.
 */
import type { BatchStatement, StatedOrder } from '../../domain/proof/batch-statement.ts'
import { placeOf, reachOf } from '../../domain/proof/own-order.ts'
import { type BatchProof, verifyParts, verifyProof } from '../../domain/proof/verify.ts'
import { statementFrom } from '../../domain/proof/wire.ts'
import { type Decimal, fromE18, toE18 } from '../decimals.ts'
import { keccak } from '../keccak.ts'
import { type ChainInput, readSettlements } from './settlements.ts'
import { misshapen } from './shape.ts'

const HASH = /^0x[0-9a-f]{64}$/

export interface VerifyOptions {
  /** Response of `GET /v0/auctions/:market_id/:batch_id/proof`, or of `marketData.batchProof`. */
  readonly proof: unknown
  /** Time of reading the proof, in Unix milliseconds; absent if unknown, for example for a file. */
  readonly readAt?: number | undefined
  /** URL of a node of the market's chain; if absent, the proof is not compared with the chain. */
  readonly rpc?: string | undefined
  /** Address of the market contract; if absent, the address in the proof is accepted. */
  readonly trader?: string | undefined
  readonly own?: OwnOrder | undefined
}

export interface OwnOrder {
  /** Hash of the order, or the order from a placement or a read. */
  readonly order: string | OwnFields
  /** Salt from `GET /v0/orders/:order_id/commitment`. */
  readonly salt: string
}

export interface Verification {
  readonly lines: readonly string[]
  /** Problems that were found; empty if every check passed. */
  readonly problems: readonly string[]
}

/** Throws if the node cannot be read. */
export async function verifyBatch(options: VerifyOptions): Promise<Verification> {
  const { rpc, trader, own, readAt = null } = options
  const malformed = misshapen(options.proof)
  if (malformed !== null) return { lines: [], problems: [`not a proof: ${malformed}`] }
  const proof = options.proof as BatchProof
  const recomputed = verifyProof(proof, keccak)
  if (recomputed.length > 0) return { lines: [], problems: recomputed }
  const statement = statementFrom(proof.statement)
  const named = statement.market.trader
  if (trader !== undefined && trader.toLowerCase() !== named.toLowerCase())
    return {
      lines: [],
      problems: [`statement.market.trader is ${named}; the demanded contract is ${trader}`],
    }
  const chain = rpc === undefined ? null : await chainProblems({ url: rpc, readAt }, proof, statement)
  const found = own === undefined ? null : findOwn(own, statement)
  const settled = proof.parts.filter(({ status }) => status === 'settled').length
  return {
    lines: [
      summaryOf(proof, statement),
      chain === null
        ? 'not compared with the chain: pass a node'
        : `compared with ${settled} of ${proof.parts.length} settlement transactions of the contract ${statement.market.trader}${settled < proof.parts.length ? '; the others are not mined' : ''}`,
      ...(trader === undefined
        ? [`the contract ${named} is named by the proof itself: demand the one that you trust`]
        : []),
      ...(found?.lines ?? []),
    ],
    problems: [...(chain ?? []), ...(found?.problems ?? [])],
  }
}

async function chainProblems(
  input: ChainInput,
  proof: BatchProof,
  statement: BatchStatement,
): Promise<string[]> {
  const { mined, differences } = await readSettlements(input, proof, statement)
  return [...differences, ...verifyParts(proof, mined, keccak)]
}

function summaryOf(proof: BatchProof, { market, orders, result, oracle }: BatchStatement): string {
  const price = fromE18(BigInt(result.price ?? 0) * market.tick)
  const volume = fromE18(BigInt(result.volume) * market.step)
  return (
    `batch ${proof.batch_id} of ${proof.symbol}, ${proof.status}: price ${price} (rule ${result.rule}, oracle price ` +
    `${fromE18(oracle.price)}), volume ${volume}, ${result.fills.length} of ${orders.length} stated orders filled, ` +
    `${result.pairs.length} pairs, ${result.cancels.length} cancels; recomputed with equal result`
  )
}

// ---------------------------------------------------------------------- an own order

export interface OwnFields {
  readonly order_hash?: unknown
  readonly side?: unknown
  readonly leverage?: unknown
  readonly reduce_only?: unknown
  readonly price?: Decimal | null
  readonly quantity?: Decimal | null
}

function findOwn({ order, salt }: OwnOrder, statement: BatchStatement): Verification {
  const own: OwnFields = typeof order === 'string' ? { order_hash: order } : order
  if (!HASH.test(String(own.order_hash)) || !HASH.test(salt))
    return {
      lines: [],
      problems: [
        'an own order needs an order hash and its salt, 0x and 64 hexadecimal digits each; ' +
          `received ${own.order_hash} and ${salt}`,
      ],
    }
  const place = placeOf(statement, { orderHash: String(own.order_hash), salt }, keccak)
  if (place === null)
    return { lines: [], problems: [`the order is not in the statement. ${reachText(statement)}`] }
  const stated = statement.orders[place - 1] as StatedOrder
  return { lines: [placeText(place, stated, statement)], problems: fieldProblems(own, stated, statement) }
}

function reachText(statement: BatchStatement): string {
  const { tick } = statement.market
  const reach = reachOf(statement)
  const price = (ticks: number): string => fromE18(BigInt(ticks) * tick)
  if (reach === null) return 'Only market orders could trade in this batch.'
  return `Live buys at ${price(reach.LONG)} or above and live sells at ${price(reach.SHORT)} or below belong in it, and market orders.`
}

function placeText(
  place: number,
  { side, type, limit, remaining }: StatedOrder,
  { market, result }: BatchStatement,
): string {
  const fill = result.fills.find(({ order }) => order === place)
  const quantity = (steps: number): string => fromE18(BigInt(steps) * market.step)
  const filled = fill === undefined ? 'nothing' : `${quantity(fill.steps)}, fee ${fromE18(fill.fee)}`
  const price = limit === 0 ? '' : ` at ${fromE18(BigInt(limit) * market.tick)}`
  return `the order is number ${place} of the statement: ${type} ${side}${price}, ${quantity(remaining)} open before the batch, filled ${filled}`
}

/**
 * Compares the fields of the order's file with the statement. The statement contains the quantity that is still open.
 */
function fieldProblems(
  own: OwnFields,
  { side, leverage, reduceOnly, limit, remaining }: StatedOrder,
  { market }: BatchStatement,
): string[] {
  const stated = { side, leverage, reduce_only: reduceOnly }
  const different = Object.entries(stated).flatMap(([name, value]) => {
    const field = own[name as keyof OwnFields]
    return field === undefined || field === value
      ? []
      : [`the statement has ${name} ${value} for the order; it is ${field}`]
  })
  const price = BigInt(limit) * market.tick
  const open = BigInt(remaining) * market.step
  const { price: ownPrice, quantity } = own
  if (ownPrice != null && toE18(ownPrice) !== price)
    different.push(`the statement has price ${fromE18(price)} for the order; it is ${ownPrice}`)
  if (quantity != null && toE18(quantity) < open)
    different.push(`the statement has ${fromE18(open)} of the order open; its quantity is ${quantity}`)
  return different
}
