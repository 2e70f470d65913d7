/** The tables of the operator's view. */
import type { ComponentChildren } from 'preact'
import { counted, NONE } from '../base/numbers.ts'
import { codeWords } from '../base/reasons.ts'
import { dateTime } from '../base/times.ts'
import { Empty, Head } from '../ui/controls.tsx'
import { Light } from '../ui/light.tsx'
import { Scroll } from '../ui/scroll.tsx'
import type {
  EngineMember,
  FeedState,
  LeaseState,
  MarketState,
  Operation,
  ProcessState,
  QueueState,
  RelayerState,
} from './read.ts'

type Column = string | { readonly num: string }
interface Row {
  readonly key: string
  /** The first one names the row. */
  readonly cells: readonly ComponentChildren[]
}

interface TableProps {
  readonly id: string
  readonly title: string
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
  readonly none: string
}

function Table({ id, title, columns, rows, none }: TableProps) {
  const classOf = (at: number): string => (typeof columns[at] === 'string' ? '' : 'num')
  return (
    <div class="panel" data-testid={`operate-${id}`}>
      <header class="panel-head">
        <h2>{title}</h2>
      </header>
      {rows.length === 0 ? (
        <Empty>{none}</Empty>
      ) : (
        <Scroll label={title}>
          <table class="table">
            <Head columns={columns} />
            <tbody>
              {rows.map(({ key, cells: [name, ...cells] }) => (
                <tr key={key}>
                  <th scope="row">{name}</th>
                  {cells.map((cell, at) => (
                    <td key={String(columns[at + 1])} class={classOf(at + 1)}>
                      {cell}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </div>
  )
}

export const age = (ms: number | null): string => (ms === null ? NONE : `${(ms / 1000).toFixed(1)} s`)
const shown = (value: number | null): string => (value === null ? NONE : String(value))
const seconds = (value: number | null): string => (value === null ? NONE : `${value.toFixed(3)} s`)

const NO_METRICS = 'No process of this kind answers at OPERATE_TARGETS.'

const memberRow = (member: EngineMember): Row => ({
  key: member.target,
  cells: [
    member.target,
    member.is_owner ? 'owner' : 'follower',
    shown(member.head),
    seconds(member.follower_lag_seconds),
    <code key="digest">{member.digest}</code>,
    member.digest_agrees === null ? (
      'group not stored'
    ) : (
      <Light key="state" ok={member.digest_agrees} text={member.digest_agrees ? 'equal' : 'differs'} />
    ),
  ],
})

const marketRow = (market: MarketState): Row => {
  const { queued, signed, submitted, is_complete, lag_ms } = market.settlement
  const { announced_mode: announced } = market
  return {
    key: String(market.market_id),
    cells: [
      market.symbol,
      <Light key="mode" ok={market.mode === 'open'} text={codeWords(market.mode)} />,
      announced === null ? 'none' : `${codeWords(announced.mode)} ${dateTime(announced.active_from)}`,
      market.freeze_pending === true ? <Light ok={false} text="requested" /> : 'none',
      seconds(market.lateness_seconds),
      age(market.turn_age_ms),
      market.last_batch_id,
      age(market.last_batch_age_ms),
      `${queued} / ${signed} / ${submitted}${is_complete ? '' : ' or more'}`,
      age(lag_ms),
      counted(market.read_model_lag, 'row'),
    ],
  }
}

const relayerRow = (relayer: RelayerState): Row => ({
  key: relayer.address,
  cells: [
    relayer.lane,
    <code key="address">{relayer.address}</code>,
    relayer.is_present ? 'present' : 'former',
    shown(relayer.balance),
    age(relayer.balance_age_ms),
    relayer.next_nonce,
    shown(relayer.transactions_in_flight),
    shown(relayer.actions_queued),
  ],
})

const leaseRow = ({ name, owner, token, is_held }: LeaseState): Row => ({
  key: name,
  cells: [name, owner, token, <Light key="state" ok={is_held} text={is_held ? 'held' : 'expired'} />],
})

function queueRows({ lane_jobs, engine_commands, api_commands }: QueueState): readonly Row[] {
  const rows = [
    ...Object.entries(lane_jobs ?? {}).map(([state, count]) => ['Relayer lane jobs', state, count] as const),
    ...Object.entries(engine_commands).map(([of, count]) => ['Engine commands', of, count] as const),
    ...api_commands.map(
      ({ target, waiting }) => ['Commands waiting for the engine', target, waiting] as const,
    ),
  ]
  return rows.map(([queue, state, count]) => ({
    key: `${queue}-${state}`,
    cells: [queue, state, shown(count)],
  }))
}

const sourceText = (source: FeedState['sources'][number]): string => {
  const why = source.detail ?? source.dropped
  return `${source.source}: ${why === null ? dateTime(source.observed_at) : codeWords(why)}`
}

const feedRow = (feed: FeedState): Row => ({
  key: `${feed.market_id}-${feed.feed}`,
  cells: [
    feed.symbol,
    feed.feed,
    <Light key="status" ok={feed.status === 'live'} text={codeWords(feed.status)} />,
    feed.reason === null ? NONE : codeWords(feed.reason),
    age(feed.age_ms),
    feed.sources.map(sourceText).join(', ') || NONE,
  ],
})

const processRow = (process: ProcessState): Row => ({
  key: process.target,
  cells: [
    process.target,
    process.kind ?? NONE,
    <Light
      key="state"
      ok={process.fault === null}
      text={process.fault === null ? 'answers' : codeWords(process.fault)}
    />,
    dateTime(process.started_at),
    seconds(process.clock_skew_seconds),
    shown(process.log_lines_dropped),
  ],
})

const num = (text: string): Column => ({ num: text })

const EngineTable = ({ members }: { members: readonly EngineMember[] }) => (
  <Table
    id="engine"
    title="Engine members"
    columns={['Member', 'Role', num('Head'), num('Behind by'), 'Digest', 'Digest of the journal']}
    rows={members.map(memberRow)}
    none={NO_METRICS}
  />
)

const MARKET_COLUMNS = [
  'Market',
  'Mode',
  'Announced',
  'Freeze',
  num('Late by'),
  num('Last turn'),
  num('Last batch'),
  num('Its age'),
  num('Queued / signed / sent'),
  num('Settlement lag'),
  num('Read model behind by'),
]

const RELAYER_COLUMNS = [
  'Lane',
  'Address',
  'Key',
  num('Balance'),
  num('Read before'),
  num('Next nonce'),
  num('In flight'),
  num('Queued'),
]

const RelayerTable = ({ relayers }: { relayers: readonly RelayerState[] }) => (
  <Table
    id="relayers"
    title="Relayers"
    columns={RELAYER_COLUMNS}
    rows={relayers.map(relayerRow)}
    none="No relayer key is registered."
  />
)

const ProcessTable = ({ processes }: { processes: readonly ProcessState[] }) => (
  <Table
    id="processes"
    title="Processes"
    columns={['Listener', 'Process', 'State', 'Started', num('Clock ahead by'), num('Log lines dropped')]}
    rows={processes.map(processRow)}
    none="OPERATE_TARGETS of the api names no process."
  />
)

export const Tables = ({ operation }: { operation: Operation }) => (
  <>
    <EngineTable members={operation.engine.members} />
    <Table
      id="markets"
      title="Markets"
      columns={MARKET_COLUMNS}
      rows={operation.markets.map(marketRow)}
      none="No market is listed."
    />
    <RelayerTable relayers={operation.relayers} />
    <Table
      id="queues"
      title="Queues"
      columns={['Queue', 'State', num('Count')]}
      rows={queueRows(operation.queues)}
      none={NO_METRICS}
    />
    <Table
      id="leases"
      title="Keeper jobs"
      columns={['Job', 'Owner', num('Token'), 'Lease']}
      rows={operation.leases.map(leaseRow)}
      none="No keeper has run a job."
    />
    <Table
      id="oracle"
      title="Oracle feeds"
      columns={['Market', 'Feed', 'Status', 'Reason', num('Report age'), 'Sources']}
      rows={operation.feeds.map(feedRow)}
      none="No price was ever published."
    />
    <ProcessTable processes={operation.processes} />
  </>
)
