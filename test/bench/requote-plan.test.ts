/** The messages of the market maker of `bench:mix`: both ways renew the same quotes. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { planRequotes, type RequoteTask, type RequoteWay } from '../../bench/mix/requote-plan.ts'
import type { Ticks } from '../../domain/units.ts'
import { perpetual } from '../support/markets.ts'

const TASK: RequoteTask = {
  port: 1,
  apiKey: 'key',
  account: 0,
  market: { spec: perpetual, oracle: 50_000 as Ticks },
  quotes: 120,
  seconds: 1,
  by: 'replace',
}
const plan = (by: RequoteWay) => planRequotes({ ...TASK, by })

describe("planned quotes of a measurement's market maker", () => {
  it('when quotes are replaced, each round replaces every quote by batches of 50 and cancels nothing', () => {
    const { first, rounds } = plan('replace')
    expect(first.map(({ size }) => size)).to.deep.equal([50, 50, 20])
    expect(rounds.map(({ at, cancel }) => [at, cancel])).to.deep.equal(
      [0, 200, 400, 600, 800].map((at) => [at, null]),
    )
    for (const { batches } of rounds) {
      const orders = batches.flatMap(({ text }) => JSON.parse(text).body.orders)
      expect(orders.map(({ cancel }) => cancel.client_order_id)).to.deep.equal(
        Array.from({ length: 120 }, (_, quote) => `quote-${quote}`),
      )
    }
  })

  it('when quotes are placed, each round cancels all of them and places the same signed orders as a replacement', () => {
    const [placing, replacing] = [plan('place'), plan('replace')]
    expect(placing.first.map(({ text }) => text)).to.deep.equal(replacing.first.map(({ text }) => text))
    for (const [at, { cancel, batches }] of placing.rounds.entries()) {
      expect(JSON.parse(cancel?.text ?? '')).to.deep.include({ op: 'cancel_all', body: { market_id: 1 } })
      const placed = batches.flatMap(({ text }) => JSON.parse(text).body.orders)
      const replaced = replacing.rounds[at]?.batches.flatMap(({ text }) => JSON.parse(text).body.orders)
      expect(placed.map(({ signature }) => signature)).to.deep.equal(
        replaced?.map(({ order }) => order.signature),
      )
      expect(placed.map(({ client_order_id }) => client_order_id)).to.deep.equal(
        replaced?.map(({ cancel: target }) => target.client_order_id),
      )
    }
  })

  it('when some quotes of a batch of replacements are placed again, they are their signed orders with their labels', () => {
    const { rounds } = plan('replace')
    const [, batch] = rounds[2]?.batches ?? []
    const { orders } = JSON.parse(batch?.text ?? '').body
    const { op, body } = JSON.parse(batch?.place([0, 49]).text ?? '')
    expect(op).to.equal('place_batch')
    expect(body.orders).to.have.length(2)
    for (const [at, position] of [0, 49].entries()) {
      expect(body.orders[at].signature).to.equal(orders[position].order.signature)
      expect(body.orders[at].client_order_id).to.equal(`quote-${50 + position}`)
    }
  })

  it('when rounds are planned, every message has an id of its own', () => {
    for (const by of ['replace', 'place'] as const) {
      const { first, rounds } = plan(by)
      const ids = [
        ...first,
        ...rounds.flatMap(({ cancel, batches }) => [...(cancel ? [cancel] : []), ...batches]),
      ]
      expect(new Set(ids.map(({ id }) => id)).size).to.equal(ids.length)
    }
  })
})
