/** The state of the exchange by component, as it reports it, and of this page's own connection. */
import { counted } from '../base/numbers.ts'
import { codeWords } from '../base/reasons.ts'
import { dateTime } from '../base/times.ts'
import { feedState, staleSince } from '../feed/connection.ts'
import { http } from '../feed/exchange.ts'
import { Empty, Head } from '../ui/controls.tsx'
import { Light } from '../ui/light.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { useRead } from '../ui/use-read.ts'

interface Status {
  readonly status: 'ok' | 'degraded'
  readonly time: string
  readonly chain: {
    readonly chain_id: number
    readonly block: number | null
    readonly seen_ms_ago: number | null
    readonly fresh: boolean
  }
  readonly markets: readonly {
    readonly market_id: number
    readonly symbol: string
    readonly mode: string
    readonly oracle_age_ms: number | null
    readonly oracle_fresh: boolean
    readonly last_batch_id: number | null
    readonly placements: boolean
    readonly read_model_lag: number | null
  }[]
}

const REFRESH_MS = 1_000
const age = (ms: number | null): string => (ms === null ? 'never' : `${(ms / 1000).toFixed(1)} s ago`)

function Components({ status, roundTripMs }: { status: Status; roundTripMs: number }) {
  const { chain, markets } = status
  const oldest = Math.max(0, ...markets.map(({ oracle_age_ms: ms }) => ms ?? Number.POSITIVE_INFINITY))
  const lag = Math.max(0, ...markets.map(({ read_model_lag }) => read_model_lag ?? 0))
  const lights = [
    { name: 'REST interface', ok: true, text: `answers in ${roundTripMs} ms` },
    {
      name: 'Live feed',
      ok: feedState.value === 'live',
      text: staleSince.value === null ? feedState.value : `away since ${dateTime(staleSince.value)}`,
    },
    {
      name: 'Chain',
      ok: chain.fresh,
      text: `block ${chain.block ?? 'unknown'}, read ${age(chain.seen_ms_ago)}`,
    },
    {
      name: 'Oracle',
      ok: markets.every(({ oracle_fresh }) => oracle_fresh),
      text: Number.isFinite(oldest) ? `oldest price ${age(oldest)}` : 'a market has no price',
    },
    { name: 'Read model', ok: lag < 100, text: `${counted(lag, 'journal row')} behind` },
    {
      name: 'Placements',
      ok: markets.every(({ placements }) => placements),
      text: `${markets.filter(({ placements }) => placements).length} of ${markets.length} markets accept orders`,
    },
  ]
  return (
    <div class="cards">
      {lights.map(({ name, ok, text }) => (
        <div class="card" key={name}>
          <small>{name}</small>
          <b>
            <Light ok={ok} text={ok ? 'OK' : 'Degraded'} />
          </b>
          <small>{text}</small>
        </div>
      ))}
    </div>
  )
}

async function readStatus() {
  const began = performance.now()
  const status = await http.get<Status>('/v0/status')
  return { status, roundTripMs: Math.round(performance.now() - began) }
}

export function StatusScreen() {
  const read = useRead('status', readStatus, REFRESH_MS)
  const found = read.value
  return (
    <section class="page">
      <header class="page-head">
        <h1>Status</h1>
        {found === null ? null : (
          <span data-testid="status">
            <Light
              ok={found.status.status === 'ok' && read.error === null}
              text={read.error === null ? found.status.status : 'not reachable'}
            />
          </span>
        )}
      </header>
      <ReadError read={read} />
      {found === null ? (
        <Empty>Reading …</Empty>
      ) : (
        <>
          <Components {...found} />
          <div class="panel">
            <Scroll label="Markets">
              <table class="table">
                <Head
                  columns={[
                    'Market',
                    'Mode',
                    'Orders',
                    { num: 'Oracle price' },
                    { num: 'Last batch' },
                    { num: 'Read model behind by' },
                  ]}
                />
                <tbody>
                  {found.status.markets.map((market) => (
                    <tr key={market.market_id}>
                      <th scope="row">{market.symbol}</th>
                      <td>{codeWords(market.mode)}</td>
                      <td>
                        <Light ok={market.placements} text={market.placements ? 'accepted' : 'rejected'} />
                      </td>
                      <td class="num">{age(market.oracle_age_ms)}</td>
                      <td class="num">{market.last_batch_id ?? '–'}</td>
                      <td class="num">{counted(market.read_model_lag ?? 0, 'row')}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          </div>
        </>
      )}
    </section>
  )
}
