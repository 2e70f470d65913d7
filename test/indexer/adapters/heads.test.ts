/** New heads wake; without the node nothing breaks. */
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
  it('given a node that comes late, it connects by itself and tells of each new head', async () => {
    const port = await freePort()
    let heads = 0
    let told = Promise.withResolvers<void>()
    const watch: Heads = watchHeads(`ws://127.0.0.1:${port}`, () => {
      heads++
      told.resolve()
    })
    const anvil = await startAnvil({ port })
    // Nobody says when it is connected: mine until it is heard.
    const miner = setInterval(() => void mine(anvil.url), 100)
    await told.promise
    clearInterval(miner)
    told = Promise.withResolvers()
    const before = heads
    await mine(anvil.url)
    await told.promise
    expect(heads).to.be.greaterThan(before)
    await watch.stop()
    await anvil.stop()
  })
})
