/** Screens that are loaded together: one file compresses better than five, and a second screen then opens at once. */
export { MarketsScreen } from './markets.tsx'
export { PortfolioScreen } from './portfolio.tsx'
export { RiskScreen } from './risk.tsx'
export { SettingsScreen } from './settings.tsx'
export { StatusScreen } from './status.tsx'
