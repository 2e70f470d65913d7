/** Logs of funding and adjustments to facts. Pure. */
import type { LogDescription, Result } from 'ethers'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { PositionAdjusted } from '../../domain/positions/adjust-replay.ts'
import type { Address, FundingIndex, HourlyFunding, Millis, Price, Quote } from '../../domain/units.ts'
import type { FundingFact, IgnoredEvent, PositionAdjustedFact } from './facts.ts'

const addressOf = (value: unknown): Address => String(value).toLowerCase() as Address
const millisOf = (value: bigint): Millis => Number(value) as Millis

const adjustedOf = (args: Result, leverage: number | null): PositionAdjusted => ({
  account: addressOf(args.account),
  signer: addressOf(args.signer),
  nonce: args.nonce,
  asOf: millisOf(args.asOf),
  amount: args.amount as Quote,
  foldedMargin: args.foldedMargin as Quote,
  leverage,
})

/** Null where the event is of another kind. Lowest nonces are asked of the contract where they matter. */
export function decodeAdjustment(
  { name, args }: LogDescription,
  spec: MarketSpec,
): PositionAdjustedFact | FundingFact | IgnoredEvent | null {
  switch (name) {
    case 'MarginAdjusted':
      return { kind: 'position_adjusted', spec, event: adjustedOf(args, null) }
    case 'LeverageAdjusted':
      return { kind: 'position_adjusted', spec, event: adjustedOf(args, Number(args.leverage)) }
    case 'FundingUpdated':
      return {
        kind: 'funding_updated',
        spec,
        event: {
          actionId: Number(args.actionId),
          rate: args.rate as HourlyFunding,
          validFrom: millisOf(args.asOf),
          validUntil: millisOf(args.validUntil),
          fundingIndex: args.fundingIndex as FundingIndex,
          oraclePrice: args.oraclePrice as Price,
          observedAt: millisOf(args.observedAt),
        },
      }
    case 'MarginNoncesInvalidated':
      return { kind: 'ignored', event: name }
    default:
      return null
  }
}
