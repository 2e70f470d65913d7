/** The picture of a batch: where demand and supply cross, and what was traded. */
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { number, placesOf } from '../base/numbers.ts'
import { curvesOf, pathOf } from './curves.ts'

const WIDTH = 900
const HEIGHT = 300
const TICKS = 6

export function CurveChart({ statement, own }: { statement: BatchStatement; own: readonly number[] }) {
  const curves = curvesOf(statement)
  const { market, result, orders } = statement
  const places = placesOf(String(market.tick))
  const x = (ticks: number): number => ((ticks - curves.lowest) / (curves.highest - curves.lowest)) * WIDTH
  const y = (steps: number): number => HEIGHT - (steps / curves.most) * HEIGHT * 0.92
  const box = { width: WIDTH, height: HEIGHT }
  const price = result.price as number | null
  const label = (ticks: number): string => number(BigInt(Math.round(ticks)) * market.tick, { places })
  const ownLimits = own.flatMap((place) => {
    const tranche = result.tranches.find(({ order }) => order === place)
    const limit = tranche?.openingLimit ?? tranche?.reducingLimit ?? null
    return limit === null ? [] : [{ place, limit: limit as number, side: orders[place - 1]?.side }]
  })
  return (
    <figure class="curves">
      <svg
        viewBox={`-4 -6 ${WIDTH + 8} ${HEIGHT + 34}`}
        role="img"
        aria-label={`Demand and supply cross at ${price === null ? 'no price' : label(price)}`}
      >
        {Array.from({ length: TICKS }, (_, index) => {
          const at = curves.lowest + ((curves.highest - curves.lowest) * index) / (TICKS - 1)
          return (
            <g key={at} class="tick">
              <line class="grid" x1={x(at)} x2={x(at)} y1="0" y2={HEIGHT} />
              <text
                x={x(at)}
                y={HEIGHT + 20}
                text-anchor={index === 0 ? 'start' : index === TICKS - 1 ? 'end' : 'middle'}
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
            <line x1={x(price)} x2={x(price)} y1="0" y2={HEIGHT} />
            <line class="volume" x1="0" x2={WIDTH} y1={y(result.volume)} y2={y(result.volume)} />
            <circle cx={x(price)} cy={y(result.volume)} r="5" />
          </g>
        )}
        {ownLimits.map(({ place, limit, side }) => (
          <g key={place} class={`own-limit ${side === 'LONG' ? 'buy' : 'sell'}`}>
            <line x1={x(limit)} x2={x(limit)} y1={HEIGHT - 26} y2={HEIGHT} />
            <text x={x(limit)} y={HEIGHT - 32} text-anchor="middle">
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
