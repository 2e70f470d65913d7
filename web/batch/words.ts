/** Descriptions of the price rules, by `rule` of a batch. */
export const RULES: Readonly<Record<string, string>> = {
  volume: 'One price alone trades the largest volume.',
  surplus: 'Among the prices with the largest volume, this one leaves the smallest surplus.',
  buy_pressure: 'At every such price buys are left over, so the highest of them was taken.',
  sell_pressure: 'At every such price sells are left over, so the lowest of them was taken.',
  limit: 'Several prices tie; the nearest to the oracle price lies at a limit of an order.',
  oracle: 'Several prices tie; the oracle price is one of them.',
}
