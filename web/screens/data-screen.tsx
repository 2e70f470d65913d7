/** The screens beside trading. One module loads them all, so that the second of them opens at once. */
import type { Screen } from '../base/router.ts'
import { BatchScreen } from '../batch/screen.tsx'
import { lazy, loadTrading } from '../ui/lazy.tsx'
import { MarketsScreen } from './markets.tsx'
import { RiskScreen } from './risk.tsx'
import { SettingsScreen } from './settings.tsx'
import { StatusScreen } from './status.tsx'

/** With the files of a trader, which no other of these screens needs. */
const PortfolioScreen = lazy(async () => (await loadTrading()).PortfolioScreen)

const SCREENS = {
  markets: MarketsScreen,
  portfolio: PortfolioScreen,
  risk: RiskScreen,
  status: StatusScreen,
  settings: SettingsScreen,
} as const

type DataScreenProps = {
  readonly screen: Extract<Screen, { readonly marketId: number }> | { readonly name: keyof typeof SCREENS }
}

export function DataScreen({ screen }: DataScreenProps) {
  if (screen.name === 'batch') {
    const { marketId, batchId } = screen
    return <BatchScreen marketId={marketId} batchId={batchId} key={`${marketId}-${batchId}`} />
  }
  const Shown = SCREENS[screen.name]
  return <Shown />
}
