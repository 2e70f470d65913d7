/** Decodes the calldata of a transaction to a market into the expectation that its receipt is reconciled with. */
import { dataSlice, toNumber } from 'ethers'
import type { Expectation, ExpectedFill, PartExpectation } from '../domain/settlement/receipt.ts'
import type { Address, Millis } from '../domain/units.ts'
import { IIsolatedTrader__factory } from '../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'

/** The interface's ABI: the market's delegating functions have no argument names. */
const MARKET = IIsolatedTrader__factory.createInterface()

const HEADER = 64
const RECORD = 128
const lower = (text: unknown): Address => String(text).toLowerCase() as Address

/** Null for a call without an expectation. `backstop` is the market's. */
export function expectationOf(data: string, backstop: string): Expectation | null {
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
        backstop: lower(backstop),
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
      return { kind: 'final_price', actionId: Number(args.actionId), price: args.report.price }
    default:
      return null
  }
}

/** Below the margin of any position. */
const LOWEST = -(2n ** 96n)

// ---------------------------------------------------------------------- a part, byte by byte (contracts/README.md)

const count = (data: string, at: number, length: number): number => toNumber(dataSlice(data, at, at + length))

function partOf(part: string): PartExpectation {
  const orders = count(part, 20, 2)
  return {
    kind: 'part',
    actionId: count(part, 0, 6),
    batchId: count(part, 6, 6),
    asOf: count(part, 12, 6),
    part: count(part, 18, 1),
    parts: count(part, 19, 1),
    price: count(part, 32, 5),
    fills: Array.from({ length: orders }, (_, index) => fillOf(part, HEADER + index * RECORD)),
  }
}

function fillOf(part: string, at: number): ExpectedFill {
  const flags = BigInt(dataSlice(part, at + 32, at + 40))
  return {
    maker: lower(dataSlice(part, at, at + 20)),
    salt: flags >> 4n,
    isForced: (count(part, at + 62, 2) & 4) !== 0,
    side: flags & 1n ? 'LONG' : 'SHORT',
    steps: count(part, at + 26, 6),
    takerSteps: count(part, at + 55, 6),
  }
}
