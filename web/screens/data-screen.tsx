/** The screens beside trading. One module loads them all, so that the second of them opens at once. */
import { MarketsScreen } from './markets.tsx'
import { PortfolioScreen } from './portfolio.tsx'
import { RiskScreen } from './risk.tsx'
import { SettingsScreen } from './settings.tsx'
import { StatusScreen } from './status.tsx'

const SCREENS = {
  markets: MarketsScreen,
  portfolio: PortfolioScreen,
  risk: RiskScreen,
  status: StatusScreen,
  settings: SettingsScreen,
} as const

export function DataScreen({ name }: { name: keyof typeof SCREENS }) {
  const Shown = SCREENS[name]
  return <Shown />
}
