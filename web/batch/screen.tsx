/** Shows one batch: curves, price rule, rationed orders, and whether this browser can verify it. */
import { useMemo } from 'preact/hooks'
import { PRICE_RULES } from '../../client/proof/price-rules.ts'
import type { BatchProof } from '../../client/responses.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { statementFrom } from '../../domain/proof/wire.ts'
import { counted, NONE, number, percent, placesOf } from '../base/numbers.ts'
import { reasonWords } from '../base/reasons.ts'
import { batchPath, tradePath } from '../base/router.ts'
import { dateTime } from '../base/times.ts'
import { ProofBadge } from '../proof/badge.tsx'
import { NodeChoice } from '../proof/node-choice.tsx'
import { Button, Empty, Head } from '../ui/controls.tsx'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { Scroll } from '../ui/scroll.tsx'
import '../style/batch.css'
import { CurveChart } from './curve-chart.tsx'
import { StatedOrders } from './stated-orders.tsx'
import { useProof } from './use-proof.ts'

function Card({ title, value, note }: { title: string; value: string; note?: string }) {
  return (
    <div class="card">
      <small>{title}</small>
      <b>{value}</b>
      {note === undefined ? null : <small>{note}</small>}
    </div>
  )
}

function Facts({ statement }: { statement: BatchStatement }) {
  const { result, market, oracle } = statement
  const [places, size] = [placesOf(String(market.tick)), placesOf(String(market.step))]
  const price = (ticks: number | null): string =>
    ticks === null ? NONE : number(BigInt(ticks) * market.tick, { places })
  const quantity = (steps: number): string => number(BigInt(steps) * market.step, { places: size })
  const larger = Math.max(result.demand, result.supply)
  const rationed = result.demand === result.supply ? null : result.demand > result.supply ? 'buys' : 'sells'
  const ratio =
    larger === 0 ? null : percent((BigInt(result.volume) * 10n ** 18n) / BigInt(larger), { places: 1 })
  return (
    <div class="cards">
      <Card
        title="Clearing price"
        value={price(result.price)}
        note={result.rule === null ? 'No orders crossed' : PRICE_RULES[result.rule]}
      />
      <Card
        title="Volume"
        value={quantity(result.volume)}
        note={`${counted(result.pairs.length, 'pair')}, ${result.fills.length} of ${counted(statement.orders.length, 'order')} filled`}
      />
      <Card
        title="Demand · supply at the price"
        value={`${quantity(result.demand)} · ${quantity(result.supply)}`}
        note={
          rationed === null
            ? 'Both sides fill completely'
            : `Each of the ${rationed} fills ${ratio} of its size`
        }
      />
      <Card
        title="Oracle price"
        value={number(oracle.price, { places })}
        note={`Band ${price(result.lo)} to ${price(result.hi)}`}
      />
    </div>
  )
}

function Parts({ proof }: { proof: BatchProof }) {
  return (
    <section class="panel" aria-label="Settlement transactions">
      <header class="panel-head">
        <h2>Settlement</h2>
      </header>
      <Scroll label="Settlement transactions">
        <table class="table">
          <Head columns={['Part', 'Status', 'Fills', 'Transaction']} />
          <tbody>
            {proof.parts.map(({ part, status, transaction_hash, fills }) => (
              <tr key={part} class={status === 'failed' ? 'voided' : ''}>
                <th scope="row">{part}</th>
                <td>{status}</td>
                <td>{fills.length}</td>
                <td class="mono wrap">{transaction_hash ?? 'not mined yet'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}

function Cancels({ statement }: { statement: BatchStatement }) {
  const { cancels } = statement.result
  if (cancels.length === 0) return null
  return (
    <p class="note">
      The batch also ended {counted(cancels.length, 'order')}:{' '}
      {cancels.map(({ order, reason }) => `number ${order} (${reasonWords(reason)})`).join(', ')}.
    </p>
  )
}

const SHAPE_ERROR = 'The statement cannot be drawn.'

function statementOf(proof: BatchProof | null): BatchStatement | null {
  const stated: unknown = proof?.statement
  if (typeof stated !== 'object' || stated === null) return null
  try {
    return statementFrom(stated)
  } catch {
    return null
  }
}

/** An invalid proof may have any shape: then only the chart fails, and the badge stays. */
function Statement({
  proof,
  statement,
  own,
}: {
  proof: BatchProof
  statement: BatchStatement
  own: readonly number[]
}) {
  return (
    <>
      <CurveChart statement={statement} own={own} />
      <Facts statement={statement} />
      <Cancels statement={statement} />
      <StatedOrders statement={statement} own={own} />
      <Parts proof={proof} />
      <p class="muted">
        Contract <span class="mono">{statement.market.trader}</span> on chain {statement.market.chainId},
        named by the proof: compare it with the address that you know. A proof does not show an order that was
        left out. Digest <span class="mono">{proof.digest}</span>
      </p>
    </>
  )
}

export function BatchScreen({ marketId, batchId }: { marketId: number; batchId: number }) {
  const { proof, verification, error, again } = useProof(marketId, batchId)
  const statement = useMemo(() => statementOf(proof), [proof])
  if (proof === null)
    return (
      <section class="page">
        <h1>Batch {batchId}</h1>
        <Empty>{error ?? 'Reading the proof …'}</Empty>
        {error === null ? null : <Button onClick={again}>Retry</Button>}
      </section>
    )
  const isDifferent = verification?.verdict.state === 'different'
  return (
    <section class="page batch">
      <header class="page-head">
        <h1>
          <a href={tradePath(proof.symbol)}>{proof.symbol}</a> · batch {batchId}
        </h1>
        <span class={`badge status ${proof.status.toLowerCase()}`}>{proof.status.toLowerCase()}</span>
        <span class="muted">{dateTime(statement?.asOf)}</span>
        <span class="grow" />
        {batchId > 1 ? (
          <a class="button small" href={batchPath(marketId, batchId - 1)}>
            ← {batchId - 1}
          </a>
        ) : null}
        <a class="button small" href={batchPath(marketId, batchId + 1)}>
          {batchId + 1} →
        </a>
      </header>
      <ProofBadge verification={verification} onRetry={again} />
      <NodeChoice />
      {statement === null ? (
        <Empty>{SHAPE_ERROR}</Empty>
      ) : (
        <>
          {isDifferent ? (
            <p class="note bad">The figures below are those of the proof, which does not hold.</p>
          ) : null}
          <ErrorBoundary name="The statement">
            <Statement proof={proof} statement={statement} own={verification?.own ?? []} />
          </ErrorBoundary>
        </>
      )}
    </section>
  )
}
