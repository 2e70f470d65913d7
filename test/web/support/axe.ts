/** Accessibility of what a page shows now. */
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

/** One text per violation, with the path and the elements; empty if there is none. */
export async function violations(page: Page): Promise<readonly string[]> {
  const found = await new AxeBuilder({ page }).analyze()
  const path = new URL(page.url()).pathname
  return found.violations.map(
    ({ id, nodes }) => `${path}: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  )
}
