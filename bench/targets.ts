/** Figures of the engine with their targets. Each names the command that measures it; `record.ts` stores its line and fills the table of the README. */

/** The JSON line with which a benchmark ends. */
// biome-ignore lint/suspicious/noExplicitAny: each benchmark has a line of its own, which its figure alone reads
export type Line = any

export interface Figure {
  /** Names the file in `results/`. */
  readonly name: string
  readonly what: string
  /** Script of the package and its flags. */
  readonly command: readonly string[]
  shown(line: Line): string
  readonly target: string
}

const refusals = ({ errors }: Line): number =>
  Object.entries(errors as Record<string, number>)
    .filter(([error]) => error.endsWith('OVERLOADED'))
    .reduce((sum, [, count]) => sum + count, 0)

/** Bare recoveries are measured before and after the run; the slower measurement counts. */
function recoveriesPerOrder(line: Line): number {
  const perSecond = Math.min(...line['recoveries per second and core'])
  return Math.round((line.processor['exchange without chain']['ms per order'] * perSecond) / 1000)
}

const percentiles = (one: Line): string => `${one.p50_ms}, ${one.p99_ms}`
const answered = ({ latency }: Line): string => percentiles(latency['sent → answered: resting'])
const stageOf = ({ figures }: Line, name: string): Line =>
  figures.find(({ stage }: { readonly stage: string }) => stage === name)

const mixAnswer = (line: Line): string => `${answered(line)}; ${refusals(line)}; ${recoveriesPerOrder(line)}`

export const FIGURES: readonly Figure[] = [
  {
    name: 'mix-200',
    what: 'mix, 200/s, after two minutes: answered; OVERLOADED; recoveries per order',
    command: ['bench:mix', '--rate', '200', '--seconds', '30', '--warmup', '120'],
    shown: mixAnswer,
    target: '4, 15; 0; 45',
  },
  {
    name: 'mix-300-busy',
    what: 'mix, 300/s beside two endless loops: answered; OVERLOADED; recoveries per order',
    command: ['bench:mix', '--rate', '300', '--seconds', '30', '--hogs', '2'],
    shown: mixAnswer,
    target: '; 0;',
  },
  {
    name: 'mix-1000',
    what: 'mix, 1,000/s: answered; OVERLOADED; recoveries per order',
    command: ['bench:mix', '--rate', '1000', '--seconds', '20'],
    shown: mixAnswer,
    target: 'p99 40; 0; 18',
  },
  {
    name: 'overload',
    what: 'mix, 800/s, above what two cores carry: accepted per second; answered; refused in',
    command: ['bench:mix', '--rate', '800', '--seconds', '20'],
    shown: (line) =>
      `${Math.round(line.orders / line.seconds)}; ${answered(line)}; ` +
      percentiles(line.latency['sent → refused: placement']),
    target: '75 % of the peak; p99 300; 50',
  },
  {
    name: 'requote-200',
    what: '200 quotes replaced each 200 ms beside 100/s: batch of 50 answered; quotes refused; recoveries per order',
    command: ['bench:mix', '--rate', '100', '--requote', '200', '--seconds', '30'],
    shown: (line) =>
      `${percentiles(line.latency['sent → answered: batch of replacements'])}; ` +
      `${line.errors["quote's replacement: OVERLOADED"] ?? 0}; ${recoveriesPerOrder(line)}`,
    target: 'p99 40; 0;',
  },
  {
    name: 'latency-100',
    what: 'orders that cross, 100/s: accepted → fill readable',
    command: ['bench:latency', '--rate', '100'],
    shown: (line) => percentiles(stageOf(line, 'fill readable')),
    target: '118, 230',
  },
  {
    name: 'ingest',
    what: 'parts of 20 applied and projected per second',
    command: ['bench:ingest'],
    shown: (line) => String(line.parts_per_second),
    target: '450',
  },
  {
    name: 'markets',
    what: '100 markets, 20 busy, one market maker in all: lateness p99',
    command: ['bench:markets'],
    shown: (line) => String(line.figures['submitted after it was due']['p99, at most, ms']),
    target: '5',
  },
  {
    name: 'handover',
    what: 'until a placement is accepted after the owner was killed, frozen, replaced as planned',
    command: ['bench:handover'],
    shown: ({ figures }) =>
      figures.map((figure: Line) => `${figure.event} ${figure['placement accepted, longest']}`).join(', '),
    target: '3000, 4000, 300',
  },
  {
    name: 'cold-start',
    what: '1 M accounts and orders: first placement, s; memory, MB; journal bytes per order',
    command: ['bench:cold-start'],
    shown: (line) =>
      [
        line['placement accepted, s'],
        line['memory, MB'],
        line['journal bytes per placed and cancelled order'],
      ].join('; '),
    target: '20; 2000;',
  },
  {
    name: 'simulation',
    what: 'simulated events of trading per minute and core; violations',
    command: ['simulate:exchange', '--scenario', 'trading', '--seed', '100001', '--seeds', '50'],
    shown: (line) => `${line.events_per_minute.toLocaleString('en')}; ${line.violations}`,
    target: '100,000; 0',
  },
]
