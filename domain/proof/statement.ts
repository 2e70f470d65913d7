/**
 * States a batch without accounts: all inputs of its result, and the result.
 * The README of this folder lists the omitted data and why the rest is sufficient.
 */
import { type AuctionRun, runAuction } from '../auction/auction.ts'
import type { ClearingInputs, Fill, Pair } from '../auction/clearing.ts'
import { splitIntoParts } from '../auction/parts.ts'
import { FLAT_CAPACITY, type PositionCapacity } from '../auction/position-capacity.ts'
import { type BatchEntry, riskTermsOf } from '../auction/tranches.ts'
import { Book, type RestingOrder } from '../book/book.ts'
import { invariant } from '../invariant.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, Seconds, Seq, Steps, UserId } from '../units.ts'
import type {
  BatchStatement,
  BatchTerms,
  Group,
  Place,
  StatedCapacity,
  StatedFill,
  StatedOrder,
  StatedResult,
  StatedTranches,
} from './batch-statement.ts'
import { statedCapacities } from './capacities.ts'

// ---------------------------------------------------------------------- the result

const toCapacity = ({
  reducingSide,
  reducible,
  bankruptcyLimit,
  mayOpen,
}: StatedCapacity): PositionCapacity => ({
  size: (reducingSide === 'LONG' ? -reducible : reducible) as Steps,
  ...{ reducingSide, bankruptcyLimit, mayOpen },
})

/** Stated orders were eligible, so expiry and acceptance times are not part of the statement. */
const toResting = (
  { commitment: _, group, ...order }: StatedOrder,
  index: number,
  asOf: Millis,
): RestingOrder => ({
  ...order,
  account: group,
  seq: (index + 1) as Seq,
  expiration: 0 as Seconds,
  acceptedAt: asOf,
})

/** Runs the auction on a statement's terms. */
export function resultOf(terms: BatchTerms): StatedResult {
  const { market, oracle, orders, asOf, standing, priceProtection } = terms
  const known = new Map(terms.capacities.map((capacity) => [capacity.group, toCapacity(capacity)]))
  const capacities = { of: (account: UserId) => known.get(account) ?? FLAT_CAPACITY }
  const spec = { ...market, chainId: BigInt(market.chainId) }
  const book = Book.of(orders.map((order, index) => toResting(order, index, asOf)))
  const run = runAuction(riskTermsOf(spec, oracle.price, capacities), {
    ...{ book, asOf, standingSeq: standing, priceProtection },
  })
  return toResult(run)
}

const byOrder = <T extends { readonly order: Place }>(items: T[]): T[] =>
  items.sort((a, b) => a.order - b.order)

function toResult({ result, entries }: AuctionRun): StatedResult {
  const { price, rule, lo, hi, volume, demand, supply } = result
  return {
    ...{ price, rule, lo, hi, volume, demand, supply },
    tranches: byOrder([...entries.buys, ...entries.sells].map(toTranches)),
    protections: result.protections.map(({ seq, ...protection }) => ({ order: seq, ...protection })),
    fills: byOrder(result.fills.map(toFill)),
    pairs: result.pairs.map(toPair),
    cancels: result.cancels.map(({ seq, reason }) => ({ order: seq, reason })),
    parts: splitIntoParts(result).map(({ fills }) => ({
      fills: byOrder(
        fills.map(({ seq, fill, taker, fee }) => ({ order: seq, steps: fill, takerSteps: taker, fee })),
      ),
    })),
  }
}

const toFill = ({ seq, fill, taker, maker, reducing, opening, fee, remaining }: Fill): StatedFill => ({
  ...{ order: seq, steps: fill, takerSteps: taker, makerSteps: maker, reducing, opening, fee, remaining },
})

const toTranches = ({ bounded, reducing, opening }: BatchEntry): StatedTranches => ({
  order: bounded.order.seq,
  reducing,
  reducingLimit: reducing > 0 ? bounded.reducingLimit : null,
  opening,
  openingLimit: opening > 0 ? bounded.openingLimit : null,
})

const toPair = ({
  buySeq,
  sellSeq,
  makerSeq,
  steps,
  buyFee,
  sellFee,
}: Pair): StatedResult['pairs'][number] => ({
  ...{ buy: buySeq, sell: sellSeq, steps, makerOrder: makerSeq, buyFee, sellFee },
})

// ---------------------------------------------------------------------- the statement

export interface CapturedBatch {
  readonly inputs: ClearingInputs
  readonly oracle: OracleReport
  readonly batchId: number
  readonly commitmentOf: (seq: Seq) => string
}

/** Orders of a statement in sequence: `[place - 1]` is the order with that place. */
export const statedSequence = ({ orders, ladder }: ClearingInputs): RestingOrder[] =>
  [...orders, ...ladder].sort((a, b) => a.seq - b.seq)

function groupsOf(orders: readonly RestingOrder[]): ReadonlyMap<UserId, Group> {
  const names = new Map<UserId, Group>()
  for (const { account } of orders) if (!names.has(account)) names.set(account, (names.size + 1) as Group)
  return names
}

/** Statement of a batch under the current rules, from its stored inputs. */
export function stateBatch({ inputs, oracle, batchId, commitmentOf }: CapturedBatch): BatchStatement {
  invariant(oracle.price === inputs.oracle, 'the report is that of the batch')
  const { ruleVersion, spec, asOf, standingSeq, priceProtection } = inputs
  const sequence = statedSequence(inputs)
  const names = groupsOf(sequence)
  const terms: BatchTerms = {
    ...{
      ruleVersion,
      market: { ...spec, chainId: Number(spec.chainId) },
      batchId,
      asOf,
      oracle,
      priceProtection,
    },
    standing: sequence.filter(({ seq }) => seq <= standingSeq).length as Place,
    orders: sequence.map((order) => toStated(order, names, commitmentOf)),
    capacities: statedCapacities(inputs, sequence, names),
  }
  return { ...terms, result: resultOf(terms) }
}

const toStated = (
  { seq, account, expiration: _, acceptedAt: __, ioc: ___, ...order }: RestingOrder,
  names: ReadonlyMap<UserId, Group>,
  commitmentOf: (seq: Seq) => string,
): StatedOrder => ({
  ...order,
  group: names.get(account) as Group,
  commitment: commitmentOf(seq),
})
