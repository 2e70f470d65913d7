/** Decodes a transaction to a market into the expectation that its receipt is compared with. */
import { dataSlice, toNumber } from 'ethers'
import type { Expectation, ExpectedFill, PartExpectation } from '../domain/settlement/receipt.ts'
import type { Address, Millis, Price } from '../domain/units.ts'
import { IIsolatedTrader__factory } from '../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'

/** Uses the interface's ABI, because the market's delegating functions have no argument names. */
const MARKET = IIsolatedTrader__factory.createInterface()

const HEADER = 64
/** Bytes of a record before its optional fields, without and with a signature. */
const [FORCED_RECORD, SIGNED_RECORD] = [46, 110]
const OPTIONAL_FIELD = 6
const lower = (text: unknown): Address => String(text).toLowerCase() as Address

/** Market terms that the expectation needs besides the call. */
export interface MarketTerms {
  readonly backstop: string
  /** Price of the final report in force. */
  readonly finalPrice: Price
}

/** Null for a call that has no expectation. */
export function expectationOf(data: string, market: MarketTerms): Expectation | null {
  const call = MARKET.parseTransaction({ data })
  if (call === null) return null
  const { name, args } = call
  switch (name) {
    case 'settleBatch':
      return partOf(String(args.part))
    case 'adjustMargin': {
      const { account, nonce, amount, removeMode, minAmount } = args.adjustment
      const least = removeMode === 1n ? -minAmount : amount
      return {
        kind: 'adjustment',
        account: lower(account),
        nonce,
        lowest: amount,
        highest: least,
        leverage: null,
      }
    }
    case 'adjustLeverage': {
      const { account, nonce, leverage, maxMarginIn, minMarginOut } = args.adjustment
      const highest = minMarginOut > 0n ? -minMarginOut : maxMarginIn
      const factor = Number(leverage / 10n ** 18n)
      return { kind: 'adjustment', account: lower(account), nonce, lowest: LOWEST, highest, leverage: factor }
    }
    case 'inheritPosition':
      return {
        kind: 'inheritance',
        actionId: Number(args.actionId),
        account: lower(args.account),
        backstop: lower(market.backstop),
      }
    case 'deleverage':
      return {
        kind: 'deleveraging',
        actionId: Number(args.actionId),
        account: lower(args.account),
        legs: [...args.counterparties].map((counterparty, index) => ({
          counterparty: lower(counterparty),
          steps: Number(args.steps[index]),
        })),
      }
    case 'updateFunding':
      return {
        kind: 'funding',
        actionId: Number(args.actionId),
        rate: args.rate,
        validUntil: Number(args.validUntil) as Millis,
      }
    case 'finalizeMarket':
      return { kind: 'final_price', actionId: Number(args.actionId), price: market.finalPrice }
    default:
      return null
  }
}

/** A lower bound below the margin of any position. */
const LOWEST = -(2n ** 96n)

// ---------------------------------------------------------------------- a part, byte by byte (docs/audit/encoding.md)

const count = (data: string, at: number, length: number): number => toNumber(dataSlice(data, at, at + length))

function partOf(part: string): PartExpectation {
  return {
    kind: 'part',
    actionId: count(part, 0, 6),
    batchId: count(part, 6, 6),
    asOf: count(part, 12, 6),
    part: count(part, 18, 1),
    parts: count(part, 19, 1),
    price: count(part, 32, 5),
    fills: fillsOf(part, count(part, 20, 2)),
  }
}

function fillsOf(part: string, orders: number): ExpectedFill[] {
  const fills: ExpectedFill[] = []
  let at = HEADER
  while (fills.length < orders) {
    const { fill, end } = readFill(part, at)
    fills.push(fill)
    at = end
  }
  return fills
}

function readFill(part: string, at: number): { fill: ExpectedFill; end: number } {
  const flags = BigInt.asUintN(57, BigInt(dataSlice(part, at + 26, at + 34)))
  const meta = count(part, at + 44, 2)
  const steps = count(part, at + 20, 6)
  const isForced = (meta & 4) !== 0
  const [hasQuantity, hasTrigger, hasTaker] = [2, 1, 32].map((bit) => (meta & bit) !== 0)
  const takerAt =
    at +
    (isForced ? FORCED_RECORD : SIGNED_RECORD) +
    (hasQuantity ? OPTIONAL_FIELD : 0) +
    (hasTrigger ? OPTIONAL_FIELD : 0)
  const whole = (meta & 16) !== 0 ? steps : 0
  return {
    fill: {
      maker: lower(dataSlice(part, at, at + 20)),
      salt: flags >> 4n,
      isForced,
      side: flags & 1n ? 'LONG' : 'SHORT',
      steps,
      takerSteps: hasTaker ? count(part, takerAt, OPTIONAL_FIELD) : whole,
    },
    end: takerAt + (hasTaker ? OPTIONAL_FIELD : 0),
  }
}
