/**
 * Verifies a batch proof: recomputes the result and compares it with the statement and the chain. Each check returns
 * differences as text; an empty list passes.
 */
import { RULE_VERSION } from '../auction/clearing.ts'
import { InvariantError } from '../invariant.ts'
import { hashOrder, type Keccak } from '../orders/order-hash.ts'
import type { SentFill, SentForcedFill, SentPart } from '../settlement/decode-settlement.ts'
import type { BatchSettled } from '../settlement/settlement.ts'
import type { Address } from '../units.ts'
import type { BatchStatement, StatedPart } from './batch-statement.ts'
import { commitment } from './commitment.ts'
import { resultOf } from './statement.ts'
import { differences, digestOf, statementFrom, toWire } from './wire.ts'

/** `settled`: the part is mined. `failed`: the part will never be mined. */
export type PartStatus = 'settling' | 'settled' | 'failed'

export interface ProofFill {
  readonly order: number
  readonly steps: number
  readonly taker_steps: number
  /**
   * The order and its salt open its commitment. They are set once the order is public on chain;
   * null before that, and for a forced order.
   */
  readonly order_hash: string | null
  readonly salt: string | null
}

export interface ProofPart {
  readonly part: number
  readonly status: PartStatus
  readonly transaction_hash: string | null
  readonly fills: readonly ProofFill[]
}

/** A published batch proof. */
export interface BatchProof {
  readonly market_id: number
  readonly symbol: string
  readonly batch_id: number
  readonly status: 'SETTLING' | 'SETTLED' | 'VOIDED'
  /** Digest of `statement`. */
  readonly digest: string
  readonly statement: unknown
  readonly parts: readonly ProofPart[]
}

/**
 * Recomputes the batch. A statement that does not match its digest is not read. `keccak` as in `orderHasher`.
 */
export function verifyProof(proof: BatchProof, keccak: Keccak): string[] {
  const found = differences('digest', proof.digest, digestOf(proof.statement, keccak))
  if (found.length > 0) return found
  try {
    const statement = statementFrom(proof.statement)
    if (statement.ruleVersion !== RULE_VERSION)
      return [
        ...found,
        `statement.rule_version is ${statement.ruleVersion}; this version verifies ${RULE_VERSION}`,
      ]
    const { result, ...terms } = statement
    found.push(...differences('statement.result', toWire(result), toWire(resultOf(terms))))
    found.push(...namingDifferences(proof, statement))
    found.push(...partDifferences(proof, statement, keccak))
  } catch (error) {
    if (!(error instanceof InvariantError)) throw error
    found.push(`statement cannot be recomputed: it is not so that ${error.message}`)
  }
  return found
}

function namingDifferences(
  proof: BatchProof,
  { market, batchId, orders, standing }: BatchStatement,
): string[] {
  const stated = { market_id: proof.market_id, symbol: proof.symbol, batch_id: proof.batch_id }
  const found = differences('proof', stated, {
    ...{ market_id: market.marketId, symbol: market.symbol, batch_id: batchId },
  })
  let groups = 0
  for (const [index, { group }] of orders.entries()) {
    if (group > groups + 1 || group < 1)
      found.push(`statement.orders[${index}].group is ${group}, out of sequence`)
    groups = Math.max(groups, group)
  }
  if (standing > orders.length) found.push(`statement.standing is ${standing}, of ${orders.length} orders`)
  return found
}

function partDifferences(
  proof: BatchProof,
  { result, orders, market, batchId }: BatchStatement,
  keccak: Keccak,
): string[] {
  const stated = proof.parts.map(({ part, fills }) => ({
    part,
    fills: fills.map(({ order, steps, taker_steps }) => ({ order, steps, taker_steps })),
  }))
  const computed = result.parts.map(({ fills }, index) => ({
    part: index + 1,
    fills: fills.map(({ order, steps, takerSteps }) => ({
      order: order as number,
      steps,
      taker_steps: takerSteps,
    })),
  }))
  const found = differences('parts', stated, computed)
  found.push(...differences('status', proof.status, statusOf(proof.parts)))
  for (const { part, status, transaction_hash, fills } of proof.parts) {
    if ((status === 'settled') !== (transaction_hash !== null))
      found.push(
        `part ${part} is ${status}, with transaction ${transaction_hash}: exactly settled parts name one`,
      )
    for (const { order, order_hash: orderHash, salt } of fills) {
      const stated = orders[order - 1]
      if (stated === undefined) continue
      const isOpen = status === 'settled' && !stated.forced
      if (isOpen !== (orderHash !== null) || isOpen !== (salt !== null)) {
        found.push(
          `part ${part}, order ${order}: its hash and salt are published exactly if the part is settled and the order signed`,
        )
      } else if (orderHash !== null && salt !== null) {
        const opened = commitmentOrNull(keccak, { salt, orderHash, marketId: market.marketId, batchId })
        if (opened !== stated.commitment)
          found.push(
            `part ${part}, order ${order}: hash and salt do not open commitment ${stated.commitment}`,
          )
      }
    }
  }
  return found
}

export function statusOf(parts: readonly Pick<ProofPart, 'status'>[]): BatchProof['status'] {
  if (parts.some(({ status }) => status === 'failed')) return 'VOIDED'
  return parts.every(({ status }) => status === 'settled') ? 'SETTLED' : 'SETTLING'
}

function commitmentOrNull(...[keccak, order]: Parameters<typeof commitment>): string | null {
  try {
    return commitment(keccak, order)
  } catch (error) {
    if (error instanceof InvariantError) return null
    throw error
  }
}

// ---------------------------------------------------------------------- the chain

/** A mined transaction. */
export interface MinedPart {
  readonly chainId: number
  readonly to: Address
  readonly sent: SentPart
  /** Event of the part; null if the transaction reverted. */
  readonly settled: BatchSettled | null
}

/**
 * Compares a settled part with its transaction: the call contains the signed orders, the event contains the fees.
 */
export function verifyPart(proof: BatchProof, part: ProofPart, mined: MinedPart, keccak: Keccak): string[] {
  const statement = statementFrom(proof.statement)
  const computed = statement.result.parts[part.part - 1]
  const name = `part ${part.part}`
  if (computed === undefined) return [`${name} is not a part of the statement`]
  const { market, batchId, asOf, oracle, result } = statement
  const { makerFee, takerFee } = market
  const { signatures } = mined.sent.oracle
  const terms = {
    ...{
      chainId: market.chainId,
      to: market.trader.toLowerCase(),
      marketId: market.marketId,
      batchId,
      part: part.part,
    },
    ...{ parts: result.parts.length, asOf, price: result.price, makerFee, takerFee },
    // The call has no signatures if the previous action used the same report: the contract verified them
    // there (`withoutRepeatedProof`).
    oracle: signatures === '0x' ? { ...oracle, signatures } : oracle,
  }
  const { fills, actionId, ...call } = mined.sent
  const found = differences(
    name,
    toWire(terms),
    toWire({ ...call, chainId: mined.chainId, to: mined.to.toLowerCase() }),
  )
  if (mined.settled === null) return [...found, `${name}: its transaction was reverted`]
  found.push(...sentDifferences(name, { statement, part, computed }, fills, keccak))
  found.push(...eventDifferences(name, mined, mined.settled))
  found.push(...feeDifferences(name, { statement, part, computed }, mined, keccak))
  return found
}

interface Compared {
  readonly statement: BatchStatement
  readonly part: ProofPart
  readonly computed: StatedPart
}

/** Key of a fill: the order hash; for a forced order, which has no hash, side and steps. */
function keyOfSent({ statement }: Compared, fill: SentFill | SentForcedFill, keccak: Keccak): string {
  if (!('order' in fill)) return `forced ${fill.side} ${fill.fill} ${fill.taker}`
  return hashOrder(fill.order, { ...statement.market, chainId: BigInt(statement.market.chainId) }, keccak)
}

/** Fills of the part that the call must contain. */
function expectedFills({ statement, part, computed }: Compared): Map<string, unknown[]> {
  const expected = new Map<string, unknown[]>()
  const add = (key: string, fill: unknown): void => {
    expected.set(key, [...(expected.get(key) ?? []), fill])
  }
  for (const { order: place, steps, takerSteps: taker } of computed.fills) {
    const order = statement.orders[place - 1]
    if (order === undefined) continue
    const { side, limit, leverage, reduceOnly } = order
    if (order.forced) add(`forced ${side} ${steps} ${taker}`, { side, steps, taker })
    else {
      const hash = part.fills.find((fill) => fill.order === place)?.order_hash ?? `order ${place}`
      add(hash, { side, steps, taker, limit, leverage, reduceOnly })
    }
  }
  return expected
}

function sentDifferences(
  name: string,
  compared: Compared,
  fills: readonly (SentFill | SentForcedFill)[],
  keccak: Keccak,
): string[] {
  const sent = new Map<string, unknown[]>()
  for (const fill of fills) {
    const { fill: steps, taker } = fill
    const key = keyOfSent(compared, fill, keccak)
    const signed = 'order' in fill ? signedFields(fill) : { side: fill.side }
    sent.set(key, [...(sent.get(key) ?? []), { ...signed, steps, taker }])
  }
  const named = (map: ReadonlyMap<string, unknown[]>) => Object.fromEntries(map)
  return differences(`${name}, fills`, named(expectedFills(compared)), named(sent))
}

const signedFields = ({ order: { side, price, leverage, reduceOnly } }: SentFill) => ({
  ...{ side, limit: price, leverage, reduceOnly },
})

/** Checks that the event repeats the call. */
function eventDifferences(name: string, { sent }: MinedPart, settled: BatchSettled): string[] {
  const { actionId, batchId, part, parts, asOf, price, makerFee, takerFee, oracle } = sent
  const header = { actionId, batchId, part, parts, asOf, price, makerFee, takerFee }
  const event = { ...settled, oraclePrice: settled.oraclePrice }
  const fields = Object.keys(header) as (keyof typeof header)[]
  const found = differences(
    `${name}, event`,
    toWire({
      ...Object.fromEntries(fields.map((field) => [field, event[field]])),
      oraclePrice: event.oraclePrice,
      observedAt: event.observedAt,
    }),
    toWire({ ...header, oraclePrice: oracle.price, observedAt: oracle.observedAt }),
  )
  const filled = settled.fills.map(({ maker, salt, side, fill, taker }) => [
    maker,
    salt.toString(),
    side,
    fill,
    taker,
  ])
  const called = sent.fills.map((fill) =>
    'order' in fill
      ? [fill.order.maker, fill.order.salt.toString(), fill.order.side, fill.fill, fill.taker]
      : [fill.account, fill.number.toString(), fill.side, fill.fill, fill.taker],
  )
  return [...found, ...differences(`${name}, event fills`, filled, called)]
}

/** Checks the charged fees. A closing fee capped at the proceeds is below the schedule. */
function feeDifferences(
  name: string,
  compared: Compared,
  { sent, settled }: MinedPart,
  keccak: Keccak,
): string[] {
  const { statement, part, computed } = compared
  const found: string[] = []
  for (const [index, fill] of sent.fills.entries()) {
    const charged = settled?.fills[index]
    if (charged === undefined) continue
    const key = keyOfSent(compared, fill, keccak)
    const place = part.fills.find((one) => one.order_hash === key)?.order
    const due = computed.fills.find((one) =>
      'order' in fill
        ? one.order === place
        : statement.orders[one.order - 1]?.forced === true &&
          one.steps === fill.fill &&
          one.takerSteps === fill.taker,
    )
    if (due === undefined) continue
    const isRight = charged.isFeeCapped ? charged.fee <= due.fee : charged.fee === due.fee
    if (!isRight)
      found.push(`${name}, order ${due.order}: charged ${charged.fee} wei; by the rules it is ${due.fee}`)
  }
  return found
}

/** Compares every settled part with its transaction. `mined` is keyed by transaction hash. */
export function verifyParts(
  proof: BatchProof,
  mined: ReadonlyMap<string, MinedPart>,
  keccak: Keccak,
): string[] {
  return proof.parts.flatMap((part) => {
    if (part.status !== 'settled' || part.transaction_hash === null) return []
    const transaction = mined.get(part.transaction_hash)
    if (transaction === undefined)
      return [`part ${part.part}: the chain has no settlement with transaction hash ${part.transaction_hash}`]
    return verifyPart(proof, part, transaction, keccak)
  })
}
