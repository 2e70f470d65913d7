/** Requests for the largest pages of described reads. */
import { perpetual } from '../../support/markets.ts'

const PAGE = 1_000

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly maximum?: number; readonly enum?: readonly string[] }
}

/** The path of a described operation with its parameters, as a request for its largest page. */
export function pathOf(
  template: string,
  parameters: readonly Parameter[],
  facts: Record<string, string>,
): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name) => facts[name] ?? '1')
  const isChart = template.includes('udf')
  const values: Record<string, string> = {
    limit: String(PAGE),
    market_id: '1',
    symbol: perpetual.symbol,
    resolution: '1',
    interval: '1m',
    address: facts.address as string,
    from: isChart ? '0' : '',
    to: isChart ? '4000000' : '',
    countback: '1000',
    batch_id: '1',
    depth: '1000',
    levels: '1000',
  }
  const query = parameters.flatMap(({ name, in: place, schema }) => {
    if (place !== 'query' || !values[name]) return []
    const value = name === 'limit' ? String(schema.maximum ?? PAGE) : values[name]
    const allowed = schema.enum?.includes(value) === false ? (schema.enum[0] as string) : value
    return [`${name}=${encodeURIComponent(allowed)}`]
  })
  return query.length === 0 ? path : `${path}?${query.join('&')}`
}
