// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title One admin, handed over in two steps; he cannot leave without a successor
interface IAdministered {
    event AdminProposed(address indexed admin, address indexed candidate);
    event AdminChanged(address indexed previous, address indexed admin);

    error NotAdmin(address caller);
    error NotCandidate(address caller);
    error AdminZero();

    function admin() external view returns (address);
    function candidate() external view returns (address);

    /// @notice Names the successor; nothing changes until he accepts. Zero withdraws the proposal. Admin only.
    function proposeAdmin(address newCandidate) external;

    /// @notice Takes the role over. Candidate only.
    function acceptAdmin() external;
}
