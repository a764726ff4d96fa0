"""What one seed stands for, drawn before anything happens."""
