/** Draws a batch's demand and supply as a standalone SVG document. Pure. */
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { fromE18 } from '../decimals.ts'
import { curvesOf, pathOf, scaleOf } from './curves.ts'

const BOX = { width: 900, height: 300 }
const LABELS = 5
const STYLE =
  'text{font:12px sans-serif;fill:#666}path{fill:none;stroke-width:2}path.demand{stroke:#16794c}path.supply{stroke:#b3261e}text.demand{fill:#16794c}text.supply{fill:#b3261e}' +
  '.grid{stroke:#ddd}.clearing{stroke:#2456c4;stroke-dasharray:4 3}circle{fill:#2456c4}'

/** `title`: a line of plain text above the curves. */
export function batchPicture(statement: BatchStatement, title: string): string {
  const { width, height } = BOX
  const { market, result } = statement
  const curves = curvesOf(statement)
  const scale = scaleOf(curves, BOX)
  const x = (tick: number): string => scale.x(tick).toFixed(1)
  const y = (steps: number): string => scale.y(steps).toFixed(1)
  const ticks = Array.from({ length: LABELS }, (_, index) =>
    Math.round(curves.lowest + ((curves.highest - curves.lowest) * index) / (LABELS - 1)),
  )
  const labels = [...new Set(ticks)].map(
    (tick) =>
      `<line class="grid" x1="${x(tick)}" x2="${x(tick)}" y1="0" y2="${height}"/>` +
      `<text x="${x(tick)}" y="${height + 18}" text-anchor="middle">${fromE18(BigInt(tick) * market.tick)}</text>`,
  )
  const clearing =
    result.price === null
      ? []
      : [
          `<line class="clearing" x1="${x(result.price)}" x2="${x(result.price)}" y1="0" y2="${height}"/>`,
          `<line class="clearing" x1="0" x2="${width}" y1="${y(result.volume)}" y2="${y(result.volume)}"/>`,
          `<circle cx="${x(result.price)}" cy="${y(result.volume)}" r="4"/>`,
        ]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-50 -30 ${width + 100} ${height + 60}">`,
    `<style>${STYLE}</style>`,
    `<text x="0" y="-12">${escaped(title)}</text>`,
    `<text class="demand" x="${width - 110}" y="-12" text-anchor="end">demand: buys</text>`,
    `<text class="supply" x="${width}" y="-12" text-anchor="end">supply: sells</text>`,
    ...labels,
    `<path class="demand" d="${pathOf(curves.demand, 'demand', curves, BOX)}"/>`,
    `<path class="supply" d="${pathOf(curves.supply, 'supply', curves, BOX)}"/>`,
    ...clearing,
    '</svg>',
    '',
  ].join('\n')
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
