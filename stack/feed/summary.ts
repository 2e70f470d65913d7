/** The summary that ends `npm run cb -- feed`. Pure. */
import { toDecimal } from '../../domain/units.ts'
import type { FeedRun, Halt } from './watch.ts'

const percent = (share: number): string => `${(100 * share).toFixed(2)} %`
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

export function summaryOf({ path, speed, symbol, readings, reports, halts, wideMoves }: FeedRun): string {
  const prices = reports.map(({ price }) => price).sort((a, b) => (a < b ? -1 : 1))
  const [lowest, highest] = [prices[0], prices.at(-1)]
  const [first, last] = [reports[0], reports.at(-1)]
  const took = first === undefined || last === undefined ? 0 : last.observedAt - first.observedAt
  const widest = wideMoves.reduce((most, { share }) => Math.max(most, share), 0)
  return [
    '',
    `feed        ${symbol} from ${path}, speed ${speed}`,
    `readings    ${readings} recorded prices`,
    `reports     ${reports.length} published in ${seconds(took)}` +
      (lowest === undefined || highest === undefined
        ? ''
        : `, from ${toDecimal(lowest)} to ${toDecimal(highest)}`),
    `halts       ${halts.length === 0 ? 'none' : listed(halts)}`,
    `moves       ${wideMoves.length} beyond the allowed move` +
      (wideMoves.length === 0 ? '' : `, the widest ${percent(widest)} from one report to the next`),
  ].join('\n')
}

function listed(halts: readonly Halt[]): string {
  const reasons = [...Map.groupBy(halts, ({ reason }) => reason)]
  return reasons
    .map(([reason, all]) => `${reason} ${all.length} (${seconds(all.reduce((sum, { ms }) => sum + ms, 0))})`)
    .join(', ')
}
