/** The two tapes of a market: its batches, and its fills. */
import { useState } from 'preact/hooks'
import type { Auction, Market } from '../../client/responses.ts'
import { ownShares } from '../account/live-account.ts'
import { number, percent, placesOf } from '../base/numbers.ts'
import { batchPath } from '../base/router.ts'
import { clock } from '../base/times.ts'
import { auctions, tape } from '../feed/market-feed.ts'
import { Empty, Tabs } from '../ui/controls.tsx'
import { Scroll } from '../ui/scroll.tsx'

const ROWS = 40

const STAGE = {
  SETTLING: 'Settling on the chain',
  SETTLED: 'Settled',
  VOIDED: 'Voided: its fills do not count',
}

function BatchRow({ auction, market }: { auction: Auction; market: Market }) {
  const [places, size] = [placesOf(market.tick_size_e18_raw), placesOf(market.step_size_e18_raw)]
  const side = auction.rationed_side
  const share = ownShares.value.get(`${market.market_id}-${auction.batch_id}`)
  const volume = BigInt(auction.volume_e18_raw)
  return (
    <a
      class={`batch-row ${auction.status.toLowerCase()}`}
      href={batchPath(market.market_id, auction.batch_id)}
      title={`Batch ${auction.batch_id}: ${STAGE[auction.status]}`}
      data-testid="batch-row"
    >
      <span class="muted">{clock(auction.as_of)}</span>
      <span class="price">{number(auction.price_e18_raw, { places })}</span>
      <span>{number(auction.volume_e18_raw, { places: size })}</span>
      <span class={side === 'LONG' ? 'up' : side === 'SHORT' ? 'down' : 'muted'}>
        {side === null
          ? 'even'
          : `${side === 'LONG' ? 'buys' : 'sells'} ${percent(auction.fill_ratio_e18_raw, { places: 0 })}`}
      </span>
      <span>
        {share === undefined || volume === 0n ? (
          <i class={`stage ${auction.status.toLowerCase()}`} role="img" aria-label={STAGE[auction.status]} />
        ) : (
          <b class="own-share">{percent((share * 10n ** 18n) / (2n * volume), { places: 0 })}</b>
        )}
      </span>
    </a>
  )
}

function BatchTape({ market }: { market: Market }) {
  const list = auctions.value.slice(0, ROWS)
  return (
    <>
      <div class="batch-row head" aria-hidden="true">
        <span>Time</span>
        <span class="price">Price</span>
        <span>Volume</span>
        <span>Rationed</span>
        <span>You</span>
      </div>
      <Scroll label="Batches" testId="batch-tape">
        {list.map((auction) => (
          <BatchRow key={auction.batch_id} auction={auction} market={market} />
        ))}
        {list.length === 0 ? <Empty>No batch has matched yet.</Empty> : null}
      </Scroll>
    </>
  )
}

function FillTape({ market }: { market: Market }) {
  const [places, size] = [placesOf(market.tick_size_e18_raw), placesOf(market.step_size_e18_raw)]
  // Each trade has a fill on both sides: the side that took is shown.
  const list = tape.value.filter((fill) => fill.taker_quantity_e18_raw !== '0').slice(0, ROWS)
  return (
    <>
      <div class="fill-row head" aria-hidden="true">
        <span>Price</span>
        <span>Size</span>
        <span>Time</span>
      </div>
      <Scroll label="Trades" testId="tape">
        {list.map((fill) => (
          <div class={`fill-row ${fill.status.toLowerCase()}`} key={fill.fill_id}>
            <span class={fill.side === 'LONG' ? 'up' : 'down'}>{number(fill.price_e18_raw, { places })}</span>
            <span>{number(fill.taker_quantity_e18_raw, { places: size })}</span>
            <span class="muted">{clock(fill.created_at)}</span>
          </div>
        ))}
        {list.length === 0 ? <Empty>No trade yet.</Empty> : null}
      </Scroll>
    </>
  )
}

const TABS = [
  { id: 'batches', label: 'Batches' },
  { id: 'trades', label: 'Trades' },
]

export function Tapes({ market }: { market: Market }) {
  const [tab, setTab] = useState('batches')
  return (
    <section class="panel tapes" aria-label="Batches and trades">
      <Tabs label="Tape" items={TABS} selected={tab} onSelect={setTab}>
        <span class="cycle" title="An auction every 200 ms">
          <i aria-hidden="true" />
          200 ms
        </span>
      </Tabs>
      {tab === 'batches' ? <BatchTape market={market} /> : <FillTape market={market} />}
    </section>
  )
}
