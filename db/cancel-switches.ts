export interface ConnectionSwitch {
  readonly connection_id: string
  readonly user_id: number
  readonly timeout_seconds: number
  readonly fire_at: number
}
