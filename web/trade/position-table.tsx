/** Open positions, whose profit follows the mark at once. */
import { useState } from 'preact/hooks'
import type { Position } from '../../client/responses.ts'
import { positions, unrealizedPnl } from '../account/live-account.ts'
import { div, NONE, number, percent, placesOf, signOf, usd } from '../base/numbers.ts'
import { tradePath } from '../base/router.ts'
import { marketById, prices } from '../feed/markets.ts'
import { Button, Empty, Head } from '../ui/controls.tsx'
import { closePosition } from './position-actions.ts'
import { ExitDialog, LeverageDialog, MarginDialog } from './position-dialogs.tsx'

type Open = { readonly kind: 'margin' | 'leverage' | 'exits'; readonly position: Position } | null

/** Five lights, as the exchange ranks positions for deleveraging. */
function Rank({ rank }: { rank: number | null }) {
  if (rank === null) return <span class="muted">{NONE}</span>
  return (
    <span
      class="rank"
      role="img"
      aria-label={`Rank ${rank} of 5 for deleveraging`}
      title="5 is deleveraged first"
    >
      {[1, 2, 3, 4, 5].map((each) => (
        <i key={each} class={each <= rank ? 'on' : ''} />
      ))}
    </span>
  )
}

function Row({ position, onOpen }: { position: Position; onOpen: (open: Open) => void }) {
  const market = marketById(position.market_id)
  const places = market === undefined ? 2 : placesOf(market.tick_size_e18_raw)
  const pnl = unrealizedPnl(position)
  const margin = BigInt(position.margin_e18_raw)
  const isPending = position.pending_size_e18_raw !== '0'
  return (
    <tr>
      <th scope="row">
        <a href={tradePath(position.symbol)}>{position.symbol}</a>{' '}
        <span class="badge">{position.leverage}×</span>
      </th>
      <td
        class={`num ${signOf(position.size_e18_raw)}`}
        data-label="Size"
        title={isPending ? 'A fill is matched and not mined yet' : undefined}
      >
        {number(position.size_e18_raw, { places: 8, short: true, sign: true })}
        {isPending
          ? ` (${number(position.pending_size_e18_raw, { places: 8, short: true, sign: true })})`
          : ''}
      </td>
      <td class="num" data-label="Entry">
        {number(position.entry_price_e18_raw, { places })}
      </td>
      <td class="num" data-label="Mark">
        {number(prices.value.get(position.market_id)?.mark_price_e18_raw ?? position.mark_price_e18_raw, {
          places,
        })}
      </td>
      <td class="num warn" data-label="Liquidation">
        {number(position.liquidation_price_e18_raw, { places })}
      </td>
      <td class="num" data-label="Margin">
        {usd(position.margin_e18_raw)}
      </td>
      <td class={`num ${signOf(pnl)}`} data-label="PnL (ROE)" data-testid="pnl">
        {usd(pnl, { sign: true })}{' '}
        {pnl === null || margin <= 0n ? '' : `(${percent(div(pnl, margin), { sign: true })})`}
      </td>
      <td data-label="ADL rank">
        <Rank rank={position.adl_rank} />
      </td>
      <td class="actions">
        <Button class="small" data-testid="exits" onClick={() => onOpen({ kind: 'exits', position })}>
          TP / SL
        </Button>
        <Button class="small" data-testid="margin" onClick={() => onOpen({ kind: 'margin', position })}>
          Margin
        </Button>
        <Button class="small" onClick={() => onOpen({ kind: 'leverage', position })}>
          Leverage
        </Button>
        <Button class="small" data-testid="close" onClick={() => void closePosition(position)}>
          Close
        </Button>
      </td>
    </tr>
  )
}

export function PositionTable() {
  const [open, setOpen] = useState<Open>(null)
  const list = positions.value
  if (list.length === 0) return <Empty>No open position.</Empty>
  const current =
    open === null ? undefined : list.find(({ market_id }) => market_id === open.position.market_id)
  const close = (): void => setOpen(null)
  return (
    <>
      <table class="table stacked" data-testid="positions">
        <Head
          columns={[
            'Market',
            { num: 'Size' },
            { num: 'Entry' },
            { num: 'Mark' },
            { num: 'Liquidation' },
            { num: 'Margin' },
            { num: 'PnL (ROE)' },
            'ADL',
          ]}
        >
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        </Head>
        <tbody>
          {list.map((position) => (
            <Row key={position.market_id} position={position} onOpen={setOpen} />
          ))}
        </tbody>
      </table>
      {open === null || current === undefined ? null : open.kind === 'margin' ? (
        <MarginDialog position={current} onClose={close} />
      ) : open.kind === 'leverage' ? (
        <LeverageDialog position={current} onClose={close} />
      ) : (
        <ExitDialog position={current} onClose={close} />
      )}
    </>
  )
}
