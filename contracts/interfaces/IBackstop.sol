// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title An account that inherits positions nobody else took
 * @notice Any account may fund it with `IMarginBank.depositFor`. A session key of this contract (a trading key) trades its
 * positions by signed orders. The contract has no token allowance and makes no call except the ones below.
 */
interface IBackstop {
    /// @notice Whether the market may name this account as its backstop from now on.
    event MarketBacked(address indexed market, bool backed);
    /// @notice What had been withdrawn went to `receiver`.
    event Paid(address indexed receiver, uint256 amount);

    error ReceiverZero();

    /// @notice Whether `market` may name this account as its backstop.
    function backs(address market) external view returns (bool);

    /// @notice Agrees to be a market's backstop, or not any more. What was inherited stays.
    function setBacked(address market, bool backed) external;

    /// @notice Lets `key` sign orders (1) and margin changes (2) for this account.
    function registerSessionKey(address key, uint8 permissions) external;

    function revokeSessionKey(address key) external;

    /// @notice First step of taking funds out: they leave *free* at once and are paid after the bank's delay.
    function requestWithdrawal(uint256 amount) external;

    /// @notice Second step: everything pending, to `receiver`.
    function withdraw(address receiver) external;

    function bank() external view returns (address);
    function accountManager() external view returns (address);
}
