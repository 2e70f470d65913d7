/** Descriptions of the price rules, by `rule` of a batch. */
import type { PriceRule } from '../../domain/auction/clearing.ts'

export const PRICE_RULES: Readonly<Record<PriceRule, string>> = {
  volume: 'One price alone trades the largest volume.',
  surplus: 'Among the prices with the largest volume, this one leaves the smallest surplus.',
  buy_pressure:
    'At every such price buys are left over: the highest was taken, or the lowest if limit orders carry the volume only there.',
  sell_pressure:
    'At every such price sells are left over: the lowest was taken, or the highest if limit orders carry the volume only there.',
  limit: 'Several prices tie, and limit orders carry the volume at this end of them only.',
  oracle: 'Several prices tie: the nearest to the oracle price was taken.',
}
