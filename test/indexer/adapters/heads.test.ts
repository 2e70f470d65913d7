/** The subscription to new heads, also while the node is down. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Heads, watchHeads } from '../../../indexer/adapters/heads.ts'
import { startAnvil } from '../../../stack/anvil.ts'
import { freePort } from '../../../stack/ports.ts'

const mine = (url: string): Promise<unknown> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_mine', params: ['0x1'] }),
  })

describe('watchHeads', () => {
  it('when the node starts after the subscription, it connects and reports each new head', async () => {
    const port = await freePort()
    let heads = 0
    let reported = Promise.withResolvers<void>()
    const watch: Heads = watchHeads(`ws://127.0.0.1:${port}`, () => {
      heads++
      reported.resolve()
    })
    const anvil = await startAnvil({ port })
    // The subscription does not report its connection: mine until a head arrives.
    const miner = setInterval(() => void mine(anvil.url), 100)
    await reported.promise
    clearInterval(miner)
    reported = Promise.withResolvers()
    const before = heads
    await mine(anvil.url)
    await reported.promise
    expect(heads).to.be.greaterThan(before)
    await watch.stop()
    await anvil.stop()
  })
})
