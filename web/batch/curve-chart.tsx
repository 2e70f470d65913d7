/** Chart of a batch: the crossing of demand and supply, and the traded volume. */
import { curvesOf, pathOf, scaleOf } from '../../client/proof/curves.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { number, placesOf } from '../base/numbers.ts'

/** A phone gets a narrow chart of its own, because the labels of a scaled-down wide chart are unreadable. */
const shape = () =>
  matchMedia('(max-width: 700px)').matches
    ? { width: 360, height: 220, ticks: 3 }
    : { width: 900, height: 300, ticks: 6 }

export function CurveChart({ statement, own }: { statement: BatchStatement; own: readonly number[] }) {
  const { width, height, ticks } = shape()
  const curves = curvesOf(statement)
  const { market, result, orders } = statement
  const places = placesOf(String(market.tick))
  const box = { width, height }
  const { x, y } = scaleOf(curves, box)
  const price = result.price as number | null
  const label = (tick: number): string => number(BigInt(Math.round(tick)) * market.tick, { places })
  const ownLimits = own.flatMap((place) => {
    const tranche = result.tranches.find(({ order }) => order === place)
    const limit = tranche?.openingLimit ?? tranche?.reducingLimit ?? null
    return limit === null ? [] : [{ place, limit: limit as number, side: orders[place - 1]?.side }]
  })
  return (
    <figure class="curves">
      <svg
        viewBox={`-4 -6 ${width + 8} ${height + 34}`}
        role="img"
        aria-label={`Demand and supply cross at ${price === null ? 'no price' : label(price)}`}
      >
        {Array.from({ length: ticks }, (_, index) => {
          const at = curves.lowest + ((curves.highest - curves.lowest) * index) / (ticks - 1)
          return (
            <g key={at} class="tick">
              <line class="grid" x1={x(at)} x2={x(at)} y1="0" y2={height} />
              <text
                x={x(at)}
                y={height + 20}
                text-anchor={index === 0 ? 'start' : index === ticks - 1 ? 'end' : 'middle'}
              >
                {label(at)}
              </text>
            </g>
          )
        })}
        <path class="demand" d={pathOf(curves.demand, 'demand', curves, box)} />
        <path class="supply" d={pathOf(curves.supply, 'supply', curves, box)} />
        {price === null ? null : (
          <g class="clearing">
            <line x1={x(price)} x2={x(price)} y1="0" y2={height} />
            <line class="volume" x1="0" x2={width} y1={y(result.volume)} y2={y(result.volume)} />
            <circle cx={x(price)} cy={y(result.volume)} r="5" />
          </g>
        )}
        {ownLimits.map(({ place, limit, side }) => (
          <g key={place} class={`own-limit ${side === 'LONG' ? 'buy' : 'sell'}`}>
            <line x1={x(limit)} x2={x(limit)} y1={height - 26} y2={height} />
            <text x={x(limit)} y={height - 32} text-anchor="middle">
              you
            </text>
          </g>
        ))}
      </svg>
      <figcaption>
        <span class="key demand">Demand: buys that accept a price</span>
        <span class="key supply">Supply: sells that accept a price</span>
        <span class="key clearing">Clearing price and volume</span>
      </figcaption>
    </figure>
  )
}
