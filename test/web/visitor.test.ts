import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import type { BatchProof } from '../../client/responses.ts'
import { byId, chooseNode, openTrade, PATIENCE_MS, proofColour, untilLive } from './support/actions.ts'
import { launch, openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { serveStatically } from './support/static-host.ts'

/** Runs in the page: pixels of a canvas per unit of its style. */
const ratiosOf = (element: unknown): readonly number[] => {
  const { width, height, clientWidth, clientHeight } = element as Record<string, number>
  return [Number(width) / Number(clientWidth), Number(height) / Number(clientHeight)]
}

const PROOF = /\/v0\/auctions\/\d+\/\d+\/proof/

describe('web: a visitor without a wallet', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let page: Page
  const base = (): string => exchange.stack.file.base_url

  before(async () => {
    watched = await openPage(exchange.browser)
    page = watched.page
  })
  after(async () => {
    await watched?.context.close()
  })

  it('when the trade screen opens, it shows prices, book, batches and the title of the tab', async () => {
    await openTrade(page, base())
    await byId(page, 'batch-row').first().waitFor({ timeout: PATIENCE_MS })
    expect(await byId(page, 'book').locator('.bids .level').count()).to.be.greaterThan(0)
    expect(await byId(page, 'book').locator('.asks .level').count()).to.be.greaterThan(0)
    expect(await page.title()).to.match(/^[\d,.]+ BTC-PERP · Clearbatch$/)
    await page.locator('[data-testid=chart] canvas').first().waitFor({ timeout: PATIENCE_MS })
  })

  it('when the screen has two pixels per unit, the chart draws with both', async () => {
    // The browser's emulation of a denser screen leaves out the sizes of canvases.
    const dense = await launch(['--force-device-scale-factor=2'])
    const sharp = await (await dense.newContext({ viewport: null })).newPage()
    await openTrade(sharp, base())
    const chart = sharp.locator('[data-testid=chart] canvas').first()
    await chart.waitFor({ timeout: PATIENCE_MS })
    while ((await chart.evaluate(ratiosOf)).join() !== '2,2') await sharp.waitForTimeout(50)
    await dense.close()
  })

  it('when a level of the book is clicked, its price is in the ticket', async () => {
    const level = byId(page, 'book').locator('.bids .level').first()
    await level.click()
    const price = byId(page, 'price')
    // The ticket follows with the next frame.
    while ((await price.inputValue()) === '') await page.waitForTimeout(20)
    expect(await price.inputValue()).to.match(/^\d+(\.\d)?$/)
  })

  it('when a batch is opened, it stays grey until the visitor chooses a node, and is then green', async () => {
    await byId(page, 'batch-row').nth(3).click()
    await page.locator('.curves svg').waitFor({ timeout: PATIENCE_MS })
    await proofColour(page, 'grey')
    await chooseNode(page, exchange.stack.file.rpc_url)
    await proofColour(page, 'green')
  })

  it('when the back button is pressed, the trade screen returns', async () => {
    await page.goBack()
    await byId(page, 'book').waitFor({ timeout: PATIENCE_MS })
    await untilLive(page)
  })

  it('when every screen is opened by its path, each has a heading and no fault', async () => {
    for (const path of ['/markets', '/portfolio', '/risk', '/status', '/settings', '/account']) {
      await page.goto(`${base()}${path}`)
      await page.locator('h1').first().waitFor({ timeout: PATIENCE_MS })
    }
    expect(watched.faults).to.deep.equal([])
  })

  it('when another host serves the page with the address of the api, it shows the live exchange and a green proof', async () => {
    const host = await serveStatically({
      api_url: base(),
      issuer_url: null,
      client_id: 'clearbatch',
      rpc_urls: [exchange.stack.file.rpc_url],
    })
    const other = await openPage(exchange.browser)
    await openTrade(other.page, host.url)
    await byId(other.page, 'batch-row').first().waitFor({ timeout: PATIENCE_MS })
    await other.page.goto(`${host.url}/batch/1/2`)
    await chooseNode(other.page, exchange.stack.file.rpc_url)
    await proofColour(other.page, 'green')
    expect(other.faults).to.deep.equal([])
    await other.context.close()
    await host.close()
  })

  const tamperings: readonly { readonly what: string; readonly change: (proof: BatchProof) => unknown }[] = [
    {
      what: 'another clearing price',
      change: (proof) => {
        const result = proof.statement.result as { price: number }
        result.price += 1
        return proof
      },
    },
    {
      what: 'another digest',
      change: (proof) => ({ ...proof, digest: `0x${'0'.repeat(64)}` }),
    },
    {
      what: 'a transaction of another batch',
      change: (proof) => ({
        ...proof,
        parts: proof.parts.map((part) => ({ ...part, transaction_hash: `0x${'1'.repeat(64)}` })),
      }),
    },
    { what: 'no statement', change: ({ statement: _, ...proof }) => proof },
  ]

  for (const { what, change } of tamperings)
    it(`when the proof has ${what}, it is red and never green`, async () => {
      await page.route(PROOF, async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: change((await response.json()) as BatchProof) })
      })
      await page.goto(`${base()}/batch/1/2`)
      await proofColour(page, 'red')
      await page.unroute(PROOF)
    })

  /** The proof as it was before any part was mined. */
  const unmined = async (): Promise<void> => {
    await page.route(PROOF, async (route) => {
      const response = await route.fetch()
      const proof = (await response.json()) as BatchProof
      const parts = proof.parts.map((part) => ({
        ...part,
        status: 'settling',
        transaction_hash: null,
        fills: part.fills.map((fill) => ({ ...fill, order_hash: null, salt: null })),
      }))
      await route.fulfill({ response, json: { ...proof, status: 'SETTLING', parts } })
    })
  }

  /** Answers of the node for one method, changed. */
  const changeNode = async (method: string, change: (result: unknown) => unknown): Promise<void> => {
    await page.route(isNode, async (route) => {
      const sent = route.request().postDataJSON() as { method: string } | null
      const response = await route.fetch()
      if (sent?.method !== method) return route.fulfill({ response })
      const answer = (await response.json()) as { result: unknown }
      return route.fulfill({ response, json: { ...answer, result: change(answer.result) } })
    })
  }
  const isNode = (url: URL): boolean => url.origin === exchange.stack.file.rpc_url

  it('when the proof denies a part that the chain has settled, it is red', async () => {
    await unmined()
    await page.goto(`${base()}/batch/1/2`)
    await proofColour(page, 'red')
    expect(await byId(page, 'proof').textContent()).to.contain('settled it')
    await page.unroute(PROOF)
  })

  it('when no part is mined yet, it is amber', async () => {
    await unmined()
    await changeNode('eth_getLogs', () => [])
    await page.goto(`${base()}/batch/1/2`)
    await proofColour(page, 'amber')
    await page.unroute(isNode)
    await page.unroute(PROOF)
  })

  it('when the node answers with another call than the one that settled, it is red', async () => {
    // A digit in the middle of the packed fills.
    const at = 10 + 64 * 5 + 7
    await changeNode('eth_getTransactionByHash', (result) => {
      const { input } = result as { input: string }
      const digit = input[at] === '1' ? '2' : '1'
      return { ...(result as object), input: `${input.slice(0, at)}${digit}${input.slice(at + 1)}` }
    })
    await page.goto(`${base()}/batch/1/2`)
    await proofColour(page, 'red')
    await page.unroute(isNode)
  })

  it('when the node is of another chain, it is grey with the reason', async () => {
    await changeNode('eth_chainId', () => '0x1')
    await page.goto(`${base()}/batch/1/2`)
    await proofColour(page, 'grey')
    expect(await byId(page, 'proof').textContent()).to.contain('serves chain 1')
    await page.unroute(isNode)
  })
})
