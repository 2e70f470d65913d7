import { expect } from 'chai'
import { describe, it } from 'mocha'
import { byId, PATIENCE_MS } from './support/actions.ts'
import { violations } from './support/axe.ts'
import { openPage } from './support/browser.ts'
import { OPERATOR_PASSWORD, usePageExchange } from './support/exchange.ts'

const TABLES = ['engine', 'markets', 'relayers', 'queues', 'leases', 'oracle', 'processes']

describe("web: the operator's view", function () {
  this.timeout(6 * PATIENCE_MS)
  const exchange = usePageExchange()

  it('when the password is wrong, nothing is shown, and when it is right, every table has the running exchange', async () => {
    const { page, context, faults } = await openPage(exchange.browser)
    await page.goto(`${exchange.stack.file.base_url}/operate`)
    const enter = async (password: string): Promise<void> => {
      await byId(page, 'operate-password').fill(password)
      await page.getByRole('button', { name: 'Open' }).click()
    }
    await enter('not the password of operators')
    await page.getByRole('alert').waitFor({ timeout: PATIENCE_MS })
    expect(await byId(page, 'operate-cards').count()).to.equal(0)
    await enter(OPERATOR_PASSWORD)
    await byId(page, 'operate-cards').waitFor({ timeout: PATIENCE_MS })
    for (const name of TABLES) {
      const rows = byId(page, `operate-${name}`).locator('tbody tr')
      await rows.first().waitFor({ timeout: PATIENCE_MS })
    }
    // Owner and standby have applied the same journal.
    const members = byId(page, 'operate-engine')
    await members.getByText('owner', { exact: true }).waitFor({ timeout: PATIENCE_MS })
    await members.getByText('follower', { exact: true }).waitFor({ timeout: PATIENCE_MS })
    await members.getByText('equal').nth(1).waitFor({ timeout: PATIENCE_MS })
    const market = byId(page, 'operate-markets').locator('tr', { hasText: 'BTC-PERP' })
    // Lateness and age of the last turn come from the metrics of the owner.
    for (const column of [3, 4])
      await market
        .locator('td')
        .nth(column)
        .getByText(/^\d+\.\d+ s$/)
        .waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'operate-relayers').getByText('m1', { exact: true }).waitFor({ timeout: PATIENCE_MS })
    expect(await violations(page)).to.deep.equal([])
    // A reload forgets the password.
    await page.reload()
    await byId(page, 'operate-password').waitFor({ timeout: PATIENCE_MS })
    expect(faults).to.deep.equal([])
    await context.close()
  })
})
