/**
 * Calls the pure rules of the contracts one by one, with the domain's values converted to their arguments.
 */
import type { MarketSpec } from '../../domain/market/market.ts'
import { type Order, triggerCondition } from '../../domain/orders/order.ts'
import { packFlags } from '../../domain/orders/order-hash.ts'
import { type FillTerms, marginOf, type Position } from '../../domain/positions/position.ts'
import type { Price, Ticks } from '../../domain/units.ts'
import { type FundingIndex, ONE } from '../../domain/units.ts'
import { LibHarness__factory } from '../../typechain-types/factories/mocks/LibHarness__factory.ts'
import { OwnerHarness__factory } from '../../typechain-types/factories/mocks/OwnerHarness__factory.ts'
import type {
  LibHarness,
  OrderFillStruct,
  PartTermsStruct,
  PositionStruct,
} from '../../typechain-types/mocks/LibHarness.ts'
import type { OwnerHarness } from '../../typechain-types/mocks/OwnerHarness.ts'
import { nameOfError } from './errors.ts'
import { chain, firstSigner } from './exchange.ts'

export const NO_SLOT = 1023
const ZERO_WORD = `0x${'00'.repeat(32)}`
const MILLIONTH = 10n ** 12n
const LIQUIDATION_BUFFER = 5_000n * MILLIONTH

export async function harness(): Promise<LibHarness> {
  return new LibHarness__factory(await firstSigner(await chain())).deploy()
}

export async function ownerHarness(): Promise<OwnerHarness> {
  return new OwnerHarness__factory(await firstSigner(await chain())).deploy()
}

export const positionStruct = (position: Position, index: FundingIndex): PositionStruct => ({
  size: position.size,
  entryNotional: position.entryNotional,
  margin: marginOf(position, index),
  leverage: position.leverage,
  hasFloors: false,
})

export const orderStruct = (order: Order, fill: number, taker: number): OrderFillStruct => ({
  maker: order.maker,
  flags: packFlags(order),
  salt: order.salt,
  buy: order.side === 'LONG',
  reduceOnly: order.reduceOnly,
  quantity: order.quantity,
  price: order.price,
  trigger: order.trigger,
  triggerCondition: triggerCondition(order.type, order.side),
  leverage: order.leverage,
  expiration: order.expiration,
  fill,
  taker,
  slot: NO_SLOT,
  forced: false,
  r: ZERO_WORD,
  s: ZERO_WORD,
  v: 27,
})

export interface TermsInput {
  readonly price: Ticks
  readonly oracle: Price
  readonly terms: FillTerms
  readonly domain?: string
}

/**
 * The terms that the contract computes once per part (`IsolatedTrader._termsOf`). Fees per step come from the
 * harness.
 */
export async function termsStruct(
  rules: LibHarness,
  spec: MarketSpec,
  { price, oracle, terms, domain }: TermsInput,
): Promise<PartTermsStruct> {
  const isBinary = spec.kind === 'binary_future'
  const tickStepValue = (spec.tick * spec.step) / ONE
  const stepNotional = BigInt(price) * tickStepValue
  const feePerStep = (rate: bigint) =>
    rules.feePerStep(isBinary, BigInt(price) * spec.tick, spec.step, stepNotional, rate / MILLIONTH)
  return {
    domainSeparator: domain ?? ZERO_WORD,
    asOf: 0,
    batchId: 1,
    price,
    tick: spec.tick,
    step: spec.step,
    tickStepValue,
    stepNotional,
    oracleStepX: oracle * spec.step,
    makerFeePerStep: await feePerStep(terms.makerFee),
    takerFeePerStep: await feePerStep(terms.takerFee),
    maxLeverage: spec.maxLeverage,
    imr: spec.imr / MILLIONTH,
    liquidationRatio: (spec.mmr + LIQUIDATION_BUFFER) / MILLIONTH,
    fundingIndex: terms.fundingIndex,
    binary: isBinary,
    forcedOnly: false,
  }
}

/** Name of the custom error with which a call reverted; null if it succeeded. */
export async function errorOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call
    return null
  } catch (error) {
    return nameOfError(error) ?? (error as Error).message
  }
}
