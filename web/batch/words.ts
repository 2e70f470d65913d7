/** Descriptions of the price rules and of the reasons of cancels. */

/** By `rule` of a batch. */
export const RULES: Readonly<Record<string, string>> = {
  volume: 'One price alone trades the largest volume.',
  surplus: 'Among the prices with the largest volume, this one leaves the smallest surplus.',
  buy_pressure: 'At every such price buys are left over, so the highest of them was taken.',
  sell_pressure: 'At every such price sells are left over, so the lowest of them was taken.',
  limit: 'Several prices tie; the nearest to the oracle price lies at a limit of an order.',
  oracle: 'Several prices tie; the oracle price is one of them.',
}

export const REASONS: Readonly<Record<string, string>> = {
  MARKET_REMAINDER: 'rest of a market order',
  PRICE_PROTECTION: 'beyond its protection price',
  SELF_TRADE: 'would trade with itself',
  INSUFFICIENT_MARGIN: 'margin does not suffice',
  REDUCE_ONLY_NO_POSITION: 'no position to reduce',
  LEVERAGE_CAP: 'leverage above the cap',
}
