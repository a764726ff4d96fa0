"""Who may look: users with passwords, a token, and a proxy that has asked already."""
