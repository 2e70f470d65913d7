// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title An account that inherits positions in liquidation
 * @notice Any account may fund it with `IMarginBank.depositFor`. A session key of this contract (a trading key) trades its
 * positions by signed orders. The contract has no token allowance and makes no call except the ones below.
 */
interface IBackstop {
    /// @notice Whether the market may set this account as its backstop from now on.
    event MarketBacked(address indexed market, bool backed);
    /// @notice `amount` was withdrawn from the bank and paid to `receiver`.
    event Paid(address indexed receiver, uint256 amount);

    error ReceiverZero();

    /// @notice Whether `market` may set this account as its backstop.
    function backs(address market) external view returns (bool);

    /// @notice Agrees to be a market's backstop, or withdraws the agreement. Inherited positions remain. Restricted.
    function setBacked(address market, bool backed) external;

    /// @notice Registers `key` to sign orders (1) and margin changes (2) for this account. Restricted.
    function registerSessionKey(address key, uint8 permissions) external;

    /// @notice Revokes `key`. Restricted.
    function revokeSessionKey(address key) external;

    /// @notice First step of a withdrawal: `amount` leaves *free* immediately. Restricted.
    function requestWithdrawal(uint256 amount) external;

    /// @notice Second step, after the bank's delay: pays the pending amount to `receiver`. Restricted.
    function withdraw(address receiver) external;

    /// @notice The `MarginBank` that holds the backstop's capital.
    function bank() external view returns (address);
    /// @notice The `AccountManager` that stores the backstop's session keys.
    function accountManager() external view returns (address);
}
