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
  await page.getByRole('button', { name: 'Sign in', exact: true }).click({ timeout: PATIENCE_MS })
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

/** Throws what the badge says in place of the colour. */
export async function proofColour(page: Page, colour: string): Promise<void> {
  const badge = byId(page, 'proof')
  try {
    await page.locator(`[data-testid=proof][data-colour=${colour}]`).waitFor({ timeout: PATIENCE_MS })
  } catch (cause) {
    const found = `${await badge.getAttribute('data-colour')}: ${await badge.textContent()}`
    throw new Error(`the proof is not ${colour} but ${found}`, { cause })
  }
}

export async function marketOrder(
  page: Page,
  side: 'Buy / long' | 'Sell / short',
  size: string,
): Promise<void> {
  // The ticket empties its size once the order before this one is placed.
  await page.locator('[data-testid=place]:disabled').waitFor({ state: 'detached', timeout: PATIENCE_MS })
  await page.getByRole('button', { name: side }).click()
  await page.getByRole('button', { name: 'Market', exact: true }).click()
  await byId(page, 'size').fill(size)
  await byId(page, 'place').click({ timeout: PATIENCE_MS })
}

const MOST_ORDERS = 20

/** Buys until the position has at least so many units: the book of a young exchange may fill a fraction of a market order. */
export async function buyUntil(page: Page, least: number): Promise<void> {
  const size = byId(page, 'positions').locator('[data-label=Size]')
  const held = async (): Promise<number> =>
    (await size.count()) === 0 ? 0 : Number.parseFloat((await size.first().textContent()) ?? '')
  for (let order = 0; order < MOST_ORDERS && (await held()) < least; order++) {
    await marketOrder(page, 'Buy / long', '0.01')
    await page.waitForTimeout(1_000)
  }
  const reached = await held()
  if (!(reached >= least)) throw new Error(`after ${MOST_ORDERS} orders the position is ${reached}`)
}

const isFocused = (element: unknown): boolean =>
  (globalThis as unknown as { readonly document: { readonly activeElement: unknown } }).document
    .activeElement === element

/** Presses Tab until the element has the focus. */
export async function tabTo(page: Page, target: Locator, most = 150): Promise<void> {
  for (let pressed = 0; pressed < most; pressed++) {
    if (await target.evaluate(isFocused)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`${most} presses of Tab do not reach ${target}`)
}

const GRAB_PX = 6

/** How often the scale is dragged: a young exchange has few candles, whose range is small. */
const MOST_ZOOMS = 8

/** The scale of prices shows what the candles need; dragging it shows more. */
async function zoomOut(
  page: Page,
  box: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
): Promise<void> {
  const x = box.x + box.width - 20
  await page.mouse.move(x, box.y + box.height / 4)
  await page.mouse.down()
  await page.mouse.move(x, box.y + (box.height * 3) / 4, { steps: 5 })
  await page.mouse.up()
}

/** Drags the line of an order on the chart: the canvas does not name its place, so every height is tried from the top. */
export async function dragOrderLine(page: Page): Promise<void> {
  const box = await byId(page, 'chart').boundingBox()
  if (box === null) throw new Error('there is no chart')
  let isMoved = false
  page.once('request', function seen(request) {
    if (request.url().endsWith('/v0/orders/replace')) isMoved = true
    else page.once('request', seen)
  })
  for (let zoomed = 0; zoomed < MOST_ZOOMS && !isMoved; zoomed++) {
    await zoomOut(page, box)
    const x = box.x + box.width / 3
    for (let y = box.y + GRAB_PX; y < box.y + box.height - 4 * GRAB_PX && !isMoved; y += GRAB_PX) {
      await page.mouse.move(x, y)
      await page.mouse.down()
      await page.mouse.move(x, y + 3 * GRAB_PX)
      await page.mouse.up()
      await page.waitForTimeout(50)
    }
  }
  if (!isMoved) throw new Error('no order line on the chart can be dragged')
  await toast(page, 'Order moved')
}
