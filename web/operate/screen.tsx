/** The operator's view: engine, markets, relayers, queues, oracle and processes, behind the operator's password. */
import { useState } from 'preact/hooks'
import { counted, NONE } from '../base/numbers.ts'
import { dateTime } from '../base/times.ts'
import { Button, Empty } from '../ui/controls.tsx'
import { Light } from '../ui/light.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { useRead } from '../ui/use-read.ts'
import { credential, enter, type Operation, readOperation, refusal } from './read.ts'
import { age, Tables } from './tables.tsx'

const REFRESH_MS = 2_000
/** A lag beyond it needs an operator. */
const LATE_MS = 10_000

const worst = (values: readonly (number | null)[]): number | null =>
  values.reduce((most, value) => (value === null ? most : Math.max(most ?? value, value)), null)

function Cards({ operation }: CardsProps) {
  const { engine, markets, relayers, queues, feeds, chain, processes } = operation
  const { bank_pause_ends_at: pausedUntil } = operation
  const lag = worst(markets.map(({ settlement }) => settlement.lag_ms))
  const balances = relayers.flatMap(({ balance }) => balance ?? [])
  const lowest = balances.length === 0 ? null : Math.min(...balances)
  const failed = queues.lane_jobs?.failed ?? 0
  const closed = markets.filter(({ mode, freeze_pending }) => mode !== 'open' || freeze_pending === true)
  const absent = feeds.filter(({ status }) => status !== 'live')
  const mismatches = Object.values(chain.settlement_mismatches).reduce((sum, count) => sum + count, 0)
  const silent = processes.filter(({ fault }) => fault !== null)
  const cards = [
    {
      name: 'Engine',
      ok: engine.owners === 1 && engine.digest_mismatches === 0,
      text: `${counted(engine.owners, 'owner')} of ${counted(engine.members.length, 'member')}`,
      more: `digest mismatches: ${engine.digest_mismatches}`,
    },
    {
      name: 'Markets',
      ok: closed.length === 0 && pausedUntil === null,
      text: closed.length === 0 ? 'all open' : closed.map(({ symbol }) => symbol).join(', '),
      more: pausedUntil === null ? `${markets.length} listed` : `bank paused until ${dateTime(pausedUntil)}`,
    },
    {
      name: 'Settlement',
      ok: (lag ?? 0) < LATE_MS && mismatches === 0,
      text: lag === null ? 'nothing open' : `oldest action ${age(lag)}`,
      more: `mismatches: ${mismatches}`,
    },
    {
      name: 'Relayers',
      ok: lowest === null || lowest > 0,
      text: `lowest balance ${lowest ?? NONE}`,
      more: `${counted(failed, 'failed job')}`,
    },
    {
      name: 'Oracle',
      ok: absent.length === 0,
      text:
        absent.length === 0
          ? 'all feeds live'
          : absent.map(({ symbol, feed }) => `${symbol} ${feed}`).join(', '),
      more: `${counted(feeds.length, 'feed')}`,
    },
    {
      name: 'Chain',
      ok: (chain.reached_ms_ago ?? Number.POSITIVE_INFINITY) < LATE_MS,
      text: `block ${chain.block ?? NONE}`,
      more: `reached ${age(chain.reached_ms_ago)} ago`,
    },
    {
      name: 'Processes',
      ok: silent.length === 0,
      text: silent.length === 0 ? 'all answer' : silent.map(({ target }) => target).join(', '),
      more: `${processes.length} named`,
    },
  ]
  return (
    <div class="cards" data-testid="operate-cards">
      {cards.map(({ name, ok, text, more }) => (
        <div class="card" key={name}>
          <small>{name}</small>
          <b>
            <Light ok={ok} text={text} />
          </b>
          <small>{more}</small>
        </div>
      ))}
    </div>
  )
}

interface CardsProps {
  readonly operation: Operation
}

function PasswordForm() {
  const [password, setPassword] = useState('')
  return (
    <form
      class="panel form"
      onSubmit={(event) => {
        event.preventDefault()
        if (password !== '') enter(password)
      }}
    >
      <label class="form-line">
        <span>Operator's password</span>
        <input
          class="input"
          type="password"
          autocomplete="current-password"
          data-testid="operate-password"
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
      </label>
      {refusal.value === null ? null : (
        <p class="note bad" role="alert">
          {refusal.value}
        </p>
      )}
      <button type="submit" class="button primary">
        Open
      </button>
    </form>
  )
}

export function OperateScreen() {
  const held = credential.value
  const read = useRead(
    `operate-${held === null ? 'closed' : 'open'}`,
    () => (held === null ? Promise.resolve(null) : readOperation()),
    held === null ? null : REFRESH_MS,
  )
  const found = read.value
  return (
    <section class="page">
      <header class="page-head">
        <h1>Operate</h1>
        {held === null || found === null ? null : (
          <>
            <span class="muted">as of {dateTime(found.time)}</span>
            <Button class="small" onClick={() => (credential.value = null)}>
              Close
            </Button>
          </>
        )}
      </header>
      {held === null ? (
        <PasswordForm />
      ) : (
        <>
          <ReadError read={read} />
          {found === null ? (
            read.error === null && <Empty>Reading …</Empty>
          ) : (
            <>
              <Cards operation={found} />
              <Tables operation={found} />
            </>
          )}
        </>
      )}
    </section>
  )
}
