/** Steps of visitors and traders on the page. */
import type { Locator, Page } from 'playwright-core'

/** Generous: the machine that runs the tests may run others. */
export const PATIENCE_MS = 60_000

export const byId = (page: Page, id: string): Locator => page.getByTestId(id)

export async function untilLive(page: Page): Promise<void> {
  await byId(page, 'feed-state').filter({ hasText: 'Live' }).waitFor({ timeout: PATIENCE_MS })
}

export async function openTrade(page: Page, baseUrl: string, symbol = 'BTC-PERP'): Promise<void> {
  await page.goto(`${baseUrl}/trade/${symbol}`)
  await byId(page, 'market-button').waitFor({ timeout: PATIENCE_MS })
  // Loaded after the first paint; on a phone it is there and hidden.
  await byId(page, 'ticket').waitFor({ state: 'attached', timeout: PATIENCE_MS })
  await untilLive(page)
}

/** On a phone: one panel of the trade screen. */
export const openSheet = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation', { name: 'Panels' }).getByRole('button', { name, exact: true }).click()

/** Connects the injected wallet and signs in at the identity provider, which sends the page back. */
export async function signIn(page: Page, baseUrl: string): Promise<void> {
  await page.goto(`${baseUrl}/account`)
  await byId(page, 'wallet').click({ timeout: PATIENCE_MS })
  await byId(page, 'sign-in').click()
  await page.getByRole('button', { name: 'Sign in' }).click({ timeout: PATIENCE_MS })
  await byId(page, 'account').waitFor({ timeout: PATIENCE_MS })
}

export async function registerKey(page: Page): Promise<void> {
  await byId(page, 'register-key').click({ timeout: PATIENCE_MS })
  await byId(page, 'sign-request').click({ timeout: PATIENCE_MS })
  await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
}

export async function fund(page: Page, amount: string): Promise<void> {
  await byId(page, 'faucet').click()
  await toast(page, 'The faucet has paid')
  await byId(page, 'amount').fill(amount)
  await byId(page, 'deposit').click()
  await toast(page, 'Deposited')
}

/** Waits for a message whose title or text contains the words. */
export const toast = (page: Page, words: string): Promise<void> =>
  byId(page, 'toast').filter({ hasText: words }).first().waitFor({ timeout: PATIENCE_MS })

export async function chooseNode(page: Page, url: string): Promise<void> {
  await byId(page, 'node').selectOption(url)
}

export async function proofColour(page: Page, colour: string): Promise<void> {
  await page.locator(`[data-testid=proof][data-colour=${colour}]`).waitFor({ timeout: PATIENCE_MS })
}

export async function marketOrder(
  page: Page,
  side: 'Buy / long' | 'Sell / short',
  size: string,
): Promise<void> {
  await page.getByRole('button', { name: side }).click()
  await page.getByRole('button', { name: 'Market', exact: true }).click()
  await byId(page, 'size').fill(size)
  await byId(page, 'place').click({ timeout: PATIENCE_MS })
}
